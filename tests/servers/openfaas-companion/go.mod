module lambdadnn.test/openfaas-companion

go 1.26.0
