module lambdadnn.test/test-function

go 1.26.0
