{{/*
# SPDX-License-Identifier: Apache-2.0 */}}
{{- define "lambdadnn.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "lambdadnn.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- $name := include "lambdadnn.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lambdadnn.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "lambdadnn.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "lambdadnn.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Selectors cannot be changed: nothing that a user may set stands in them but names. */}}
{{- define "lambdadnn.selectorLabels" -}}
app.kubernetes.io/name: {{ include "lambdadnn.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lambdadnn.commonLabels" -}}
app.kubernetes.io/part-of: lambdadnn
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lambdadnn.labels" -}}
{{ include "lambdadnn.selectorLabels" . }}
app.kubernetes.io/component: operator
{{ include "lambdadnn.commonLabels" . }}
{{- end }}

{{- define "lambdadnn.minioLabels" -}}
{{ include "lambdadnn.selectorLabels" . }}
app.kubernetes.io/component: minio
{{ include "lambdadnn.commonLabels" . }}
{{- end }}

{{/* (dict "image" .Values.image "root" $): registry/repository:tag@digest */}}
{{- define "lambdadnn.image" -}}
{{- $registry := default .image.registry .root.Values.global.imageRegistry }}
{{- $tag := default .root.Chart.AppVersion .image.tag }}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .image.repository }}:{{ $tag }}
{{- with .image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "lambdadnn.minioImage" -}}
{{- $image := .Values.minio.image }}
{{- if not $image.repository }}
{{- fail "minio.image.repository: name an image of MinIO that your nodes can pull; no maintained one is published" }}
{{- end }}
{{- with .Values.global.imageRegistry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ default "latest" $image.tag }}
{{- end }}

{{- define "lambdadnn.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets | uniq }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lambdadnn.minioName" -}}
{{ include "lambdadnn.fullname" . }}-minio
{{- end }}

{{- define "lambdadnn.minioSecret" -}}
{{- default (include "lambdadnn.minioName" .) .Values.minio.existingSecret }}
{{- end }}

{{- define "lambdadnn.storeUri" -}}
{{- if and .Values.minio.enabled (not .Values.objectStore.uri) -}}
s3://{{ .Values.minio.bucket }}
{{- else }}
{{- .Values.objectStore.uri }}
{{- end }}
{{- end }}

{{- define "lambdadnn.storeEndpoint" -}}
{{- if and .Values.minio.enabled (not .Values.objectStore.endpoint) -}}
http://{{ include "lambdadnn.minioName" . }}.{{ include "lambdadnn.namespace" . }}.svc:9000
{{- else }}
{{- .Values.objectStore.endpoint }}
{{- end }}
{{- end }}

{{- define "lambdadnn.storeSecret" -}}
{{- if .Values.objectStore.existingSecret }}
{{- .Values.objectStore.existingSecret }}
{{- else if .Values.minio.enabled }}
{{- include "lambdadnn.minioSecret" . }}
{{- end }}
{{- end }}

{{/* Whether functions of jobs are bounded by policies: those of OpenFaaS lie in one namespace. */}}
{{- define "lambdadnn.boundsJobs" -}}
{{- if and .Values.networkPolicy.jobs.enabled (not .Values.openfaas.gateway) }}true{{ end }}
{{- end }}

{{/* Who reaches the functions of jobs and whom they reach: the operator's --network-policies. */}}
{{- define "lambdadnn.jobNetworkPolicies" -}}
operators:
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ include "lambdadnn.namespace" . }}
  podSelector:
    matchLabels:
      {{- include "lambdadnn.selectorLabels" . | nindent 6 }}
      app.kubernetes.io/component: operator
{{- $jobs := .Values.networkPolicy.jobs }}
{{- range $name := list "knative" "gateways" "names" "store" "extraIngress" "extraEgress" }}
{{- with index $jobs $name }}
{{ $name }}:
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Which stores jobs may name, and where all of them are: the operator's --store-endpoints. */}}
{{- define "lambdadnn.storeEndpoints" -}}
{{- if .Values.objectStore.peers }}
peers:
{{ toYaml .Values.objectStore.peers }}
{{- else if and .Values.minio.enabled (not .Values.objectStore.endpoint) }}
peers:
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ include "lambdadnn.namespace" . }}
  podSelector:
    matchLabels:
      {{- include "lambdadnn.selectorLabels" . | nindent 6 }}
      app.kubernetes.io/component: minio
{{- end }}
{{- with .Values.objectStore.allowedEndpoints }}
allowedEndpoints:
{{ toYaml . }}
{{- else }}
allowedEndpoints: []
{{- end }}
{{- end }}

{{/* The ports of all stores that the operator may be asked to reach, as a list in JSON. */}}
{{- define "lambdadnn.storePorts" -}}
{{- $ports := list }}
{{- range .Values.networkPolicy.storePorts }}
{{- $ports = append $ports (int .) }}
{{- end }}
{{- with include "lambdadnn.storeEndpoint" . }}
{{- $ports = append $ports (int (include "lambdadnn.portOf" .)) }}
{{- end }}
{{- range .Values.objectStore.allowedEndpoints }}
{{- with .port }}
{{- $ports = append $ports (int .) }}
{{- end }}
{{- end }}
{{- uniq $ports | toJson }}
{{- end }}

{{/* Where functions run: for the operator, its check and its uninstallation. */}}
{{- define "lambdadnn.backendArgs" -}}
{{- if .Values.openfaas.gateway }}
- --backend=OpenFaaS
- --openfaas-gateway={{ .Values.openfaas.gateway }}
- --openfaas-namespace={{ .Values.openfaas.functionNamespace }}
- --openfaas-gateway-namespace={{ .Values.openfaas.gatewayNamespace }}
{{- if .Values.openfaas.authSecret }}
- --openfaas-auth-dir=/etc/lambdadnn/openfaas
{{- end }}
{{- with .Values.openfaas.maxFunctions }}
- --openfaas-max-functions={{ . }}
{{- end }}
{{- with .Values.openfaas.timeoutSeconds }}
- --openfaas-timeout-seconds={{ . }}
{{- end }}
{{- else }}
- --backend=Knative
{{- end }}
{{- end }}

{{/* What the operator and its check are told; keep both alike. */}}
{{- define "lambdadnn.args" -}}
{{ include "lambdadnn.backendArgs" . }}
- --platform=/etc/lambdadnn/platform/platform.yaml
{{- if include "lambdadnn.boundsJobs" . }}
- --network-policies=/etc/lambdadnn/network-policies/network-policies.yaml
{{- end }}
- --store-endpoints=/etc/lambdadnn/store-endpoints/store-endpoints.yaml
- --pod-rules=/etc/lambdadnn/pod-rules/pod-rules.yaml
- --worker-image={{ include "lambdadnn.image" (dict "image" .Values.workerImage "root" .) }}
- --server-image={{ include "lambdadnn.image" (dict "image" .Values.serverImage "root" .) }}
{{- if and .Values.workerGpuImage.repository (not .Values.openfaas.gateway) }}
- --worker-gpu-image={{ include "lambdadnn.image" (dict "image" .Values.workerGpuImage "root" .) }}
{{- end }}
- {{ ternary "--function-tls" "--no-function-tls" .Values.functions.tls }}
{{- with .Values.functions.imagePullSecrets }}
- --image-pull-secrets={{ join "," (uniq .) }}
{{- end }}
{{- with .Values.watchNamespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- if .Values.leaderElection.enabled }}
- --leader-elect
- --lease-namespace={{ include "lambdadnn.namespace" . }}
- --lease-name={{ include "lambdadnn.fullname" . }}
{{- end }}
{{- with include "lambdadnn.storeUri" . }}
- --store={{ . }}
{{- end }}
{{- with .Values.controller.namespaceWeights }}
- --namespace-weights={{ range $i, $namespace := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $namespace }}={{ get $.Values.controller.namespaceWeights $namespace }}{{ end }}
{{- end }}
{{- with .Values.objectStore.readable }}
- --readable={{ join "," . }}
{{- end }}
- {{ ternary "--require-job-credentials" "--expose-operator-credentials" .Values.objectStore.requireJobCredentials }}
{{- if .Values.objectStore.caSecret }}
- --store-ca-file=/etc/lambdadnn/store-ca/ca.crt
{{- end }}
{{- if .Values.metrics.enabled }}
- --metrics-address=:{{ .Values.metrics.port }}
{{- else }}
- --metrics-address=0
{{- end }}
- --health-address=:8081
- --workers={{ .Values.controller.workers }}
{{- if .Values.controller.kubeApiQps }}
- --kube-api-qps={{ .Values.controller.kubeApiQps }}
{{- end }}
- --log-level={{ .Values.logging.level }}
- --log-format={{ .Values.logging.format }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lambdadnn.env" -}}
{{- with include "lambdadnn.storeEndpoint" . }}
- name: LAMBDADNN_S3_ENDPOINT
  value: {{ . | quote }}
{{- end }}
- name: LAMBDADNN_S3_REGION
  value: {{ .Values.objectStore.region | quote }}
- name: LAMBDADNN_S3_PATH_STYLE
  value: {{ .Values.objectStore.pathStyle | quote }}
- name: LAMBDADNN_S3_SIGN_PAYLOAD
  value: {{ .Values.objectStore.signPayload | quote }}
{{- if include "lambdadnn.storeSecret" . }}
- name: LAMBDADNN_S3_CREDENTIALS_DIR
  value: /etc/lambdadnn/store-credentials
{{- end }}
{{- with .Values.objectStore.roleArn }}
- name: LAMBDADNN_S3_ROLE_ARN
  value: {{ . | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Traces of jobs: of the operator alone, not of its check. A value of OTEL_RESOURCE_ATTRIBUTES is
percent-encoded, but for what the kubelet puts in. */}}
{{- define "lambdadnn.tracingEnv" -}}
{{- $tracing := .Values.tracing }}
{{- with $tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
- name: OTEL_EXPORTER_OTLP_TIMEOUT
  value: {{ int $tracing.timeoutMilliseconds | quote }}
- name: OTEL_SERVICE_NAME
  value: {{ $tracing.serviceName | quote }}
{{- with $tracing.headersSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $tracing.headersKey }}}
{{- end }}
- name: LAMBDADNN_POD_NAME
  valueFrom:
    fieldRef: {fieldPath: metadata.name}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: "k8s.namespace.name={{ include "lambdadnn.namespace" $ }},k8s.pod.name=$(LAMBDADNN_POD_NAME)
    {{- range $key, $value := $tracing.resourceAttributes }},{{ $key }}={{ $value | toString | urlquery | replace "+" "%20" }}{{ end }}"
{{- end }}
{{- end }}

{{/* The port in a URL; else that of its scheme. */}}
{{- define "lambdadnn.portOf" -}}
{{- $said := regexFind ":[0-9]+$" (regexReplaceAll "^([a-z]+://[^/]*).*$" . "${1}") | trimPrefix ":" -}}
{{- default (ternary "80" "443" (hasPrefix "http:" .)) $said }}
{{- end }}

{{- define "lambdadnn.volumeMounts" -}}
- name: platform
  mountPath: /etc/lambdadnn/platform
  readOnly: true
- name: store-endpoints
  mountPath: /etc/lambdadnn/store-endpoints
  readOnly: true
- name: pod-rules
  mountPath: /etc/lambdadnn/pod-rules
  readOnly: true
{{- if include "lambdadnn.boundsJobs" . }}
- name: network-policies
  mountPath: /etc/lambdadnn/network-policies
  readOnly: true
{{- end }}
{{- if include "lambdadnn.storeSecret" . }}
- name: store-credentials
  mountPath: /etc/lambdadnn/store-credentials
  readOnly: true
{{- end }}
{{- if and .Values.openfaas.gateway .Values.openfaas.authSecret }}
- name: openfaas
  mountPath: /etc/lambdadnn/openfaas
  readOnly: true
{{- end }}
{{- if .Values.objectStore.caSecret }}
- name: store-ca
  mountPath: /etc/lambdadnn/store-ca
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lambdadnn.volumes" -}}
- name: platform
  configMap:
    name: lambdadnn-platform
- name: store-endpoints
  configMap:
    name: {{ include "lambdadnn.fullname" . }}-store-endpoints
- name: pod-rules
  configMap:
    name: {{ include "lambdadnn.fullname" . }}-pod-rules
{{- if include "lambdadnn.boundsJobs" . }}
- name: network-policies
  configMap:
    name: {{ include "lambdadnn.fullname" . }}-network-policies
{{- end }}
{{- with include "lambdadnn.storeSecret" . }}
{{- $made := and (not $.Values.objectStore.existingSecret) $.Values.minio.enabled }}
- name: store-credentials  # a volume: the operator sees another key without a restart
  secret:
    secretName: {{ . }}
    items:
    - key: {{ $made | ternary "accessKeyId" $.Values.objectStore.accessKeyKey }}
      path: accessKeyId
    - key: {{ $made | ternary "secretAccessKey" $.Values.objectStore.secretKeyKey }}
      path: secretAccessKey
{{- end }}
{{- if and .Values.openfaas.gateway .Values.openfaas.authSecret }}
- name: openfaas
  secret:
    secretName: {{ .Values.openfaas.authSecret }}
{{- end }}
{{- with .Values.objectStore.caSecret }}
- name: store-ca
  secret:
    secretName: {{ . }}
    items:
    - key: ca.crt
      path: ca.crt
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The rules of a set of files/rbac-rules.yaml, which the operator itself carries, too. */}}
{{- define "lambdadnn.rules" -}}
{{- $sets := (.root.Files.Get "files/rbac-rules.yaml" | fromYaml).sets }}
{{- range .sets }}
{{- toYaml (index $sets .) }}
{{ end }}
{{- end }}

{{/* Resources of a pod that runs once: it fits where jobs fill the nodes. */}}
{{- define "lambdadnn.resourcesOfOnePass" -}}
{{- $resources := deepCopy .Values.resources }}
{{- $least := dict "cpu" "1m" "memory" "32Mi" }}
{{- $_ := set $resources "requests" (merge $least (default dict $resources.requests)) }}
{{- toYaml $resources }}
{{- end }}
