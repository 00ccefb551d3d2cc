{{/*
# SPDX-License-Identifier: Apache-2.0

What jobs may put into their pods (`jobs.allowed`), once for the operator (operator/resources/pod_rules.cc)
and once in CEL for the API server; tests/data/pod_rules.yaml holds both to the same answers. */}}

{{/* The lists that there are: the operator's --pod-rules. */}}
{{- define "lambdadnn.podRules" -}}
{{- $rules := dict }}
{{- range $name, $list := .Values.jobs.allowed }}
{{- if kindIs "slice" $list }}
{{- $_ := set $rules $name $list }}
{{- end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}

{{/* (dict "list" LIST "name" EXPRESSION): whether the list admits the name. A text in JSON is one in
CEL, too, whatever it holds. */}}
{{- define "lambdadnn.celAdmits" -}}
{{- $exact := list }}
{{- $prefixes := list }}
{{- range .list }}
{{- if hasSuffix "*" . }}
{{- $prefixes = append $prefixes (trimSuffix "*" .) }}
{{- else }}
{{- $exact = append $exact . }}
{{- end }}
{{- end -}}
({{ .name }} in {{ toJson $exact }} || {{ toJson $prefixes }}.exists(prefix, {{ .name }}.startsWith(prefix)))
{{- end }}

{{/* (dict "list" LIST "of" EXPRESSION): whether the list admits the labels of a NodeSelectorTerm. */}}
{{- define "lambdadnn.celAdmitsTerm" -}}
{{ .of }}.all(part, part in ['matchExpressions', 'matchFields'] && {{ .of }}[part].all(each,
each.all(member, member in ['key', 'operator', 'values']) && has(each.key) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "each.key") }}))
{{- end }}

{{/* Of the pods of all functions, or of workers. */}}
{{- define "lambdadnn.celAdmitsTolerations" -}}
{{ .of }}.all(each,
(has(each.key) && {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "each.key") }}))
{{- end }}

{{- define "lambdadnn.celAdmitsNodeSelector" -}}
{{ .of }}.all(key, {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "key") }})
{{- end }}

{{/* What is not known is refused: decoders of pods in Go also take nodeaffinity for nodeAffinity. */}}
{{- define "lambdadnn.celAdmitsAffinity" -}}
{{- $nodes := "variables.pod.affinity.nodeAffinity" }}
{{- $required := printf "%s.requiredDuringSchedulingIgnoredDuringExecution" $nodes }}
{{- $preferred := printf "%s.preferredDuringSchedulingIgnoredDuringExecution" $nodes -}}
variables.pod.affinity.all(kind, kind in ['nodeAffinity', 'podAffinity', 'podAntiAffinity']) &&
(!has({{ $nodes }}) || ({{ $nodes }}.all(kind, kind in
['requiredDuringSchedulingIgnoredDuringExecution', 'preferredDuringSchedulingIgnoredDuringExecution']) &&
(!has({{ $required }}) || ({{ $required }}.all(member, member == 'nodeSelectorTerms') &&
(!has({{ $required }}.nodeSelectorTerms) || {{ $required }}.nodeSelectorTerms.all(term,
{{ include "lambdadnn.celAdmitsTerm" (dict "list" .list "of" "term") }})))) &&
(!has({{ $preferred }}) || {{ $preferred }}.all(term,
term.all(member, member in ['weight', 'preference']) && (!has(term.preference) ||
{{ include "lambdadnn.celAdmitsTerm" (dict "list" .list "of" "term.preference") }})))))
{{- end }}

{{/* (dict "list" LIST "of" EXPRESSION): whether the list admits the namespaces of a PodAffinityTerm,
beside the job's own. Whatever a namespaceSelector selects may change: it is refused. */}}
{{- define "lambdadnn.celAdmitsPodTerm" -}}
{{ .of }}.all(member, member in ['labelSelector', 'matchLabelKeys', 'mismatchLabelKeys', 'namespaces', 'topologyKey']) &&
(!has({{ .of }}.namespaces) || {{ .of }}.namespaces.all(name, name == request.namespace ||
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "name") }}))
{{- end }}

{{/* (dict "list" LIST "kind" KIND) */}}
{{- define "lambdadnn.celAdmitsPodTerms" -}}
{{- $pods := printf "variables.pod.affinity.%s" .kind }}
{{- $required := printf "%s.requiredDuringSchedulingIgnoredDuringExecution" $pods }}
{{- $preferred := printf "%s.preferredDuringSchedulingIgnoredDuringExecution" $pods -}}
variables.pod.affinity.all(kind, kind in ['nodeAffinity', 'podAffinity', 'podAntiAffinity']) &&
(!has({{ $pods }}) || ({{ $pods }}.all(kind, kind in
['requiredDuringSchedulingIgnoredDuringExecution', 'preferredDuringSchedulingIgnoredDuringExecution']) &&
(!has({{ $required }}) || {{ $required }}.all(term,
{{ include "lambdadnn.celAdmitsPodTerm" (dict "list" .list "of" "term") }})) &&
(!has({{ $preferred }}) || {{ $preferred }}.all(term,
term.all(member, member in ['weight', 'podAffinityTerm']) && (!has(term.podAffinityTerm) || (
{{ include "lambdadnn.celAdmitsPodTerm" (dict "list" .list "of" "term.podAffinityTerm") }}))))))
{{- end }}

{{- define "lambdadnn.celAdmitsAffinityNamespaces" -}}
{{ include "lambdadnn.celAdmitsPodTerms" (dict "list" .list "kind" "podAffinity") }}
{{- end }}

{{- define "lambdadnn.celAdmitsAntiAffinityNamespaces" -}}
{{ include "lambdadnn.celAdmitsPodTerms" (dict "list" .list "kind" "podAntiAffinity") }}
{{- end }}

{{- define "lambdadnn.celAdmitsImages" -}}
variables.pod.containers.all(container, !has(container.image) ||
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "container.image") }})
{{- end }}

{{- define "lambdadnn.celAdmitsResources" -}}
variables.pod.containers.all(container, !has(container.resources) || (
(!has(container.resources.requests) || container.resources.requests.all(name,
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "name") }})) &&
(!has(container.resources.limits) || container.resources.limits.all(name,
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "name") }}))))
{{- end }}

{{- define "lambdadnn.celAdmitsVolumeTypes" -}}
variables.pod.volumes.all(volume,
volume.all(type, type == 'name' || {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "type") }}) &&
(!has(volume.projected) || (
volume.projected.all(member, member in ['sources', 'defaultMode']) &&
(!has(volume.projected.sources) || volume.projected.sources.all(source,
source.all(type, {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "type") }}))))))
{{- end }}

{{- define "lambdadnn.celAdmitsMountedSecrets" -}}
variables.pod.volumes.all(volume,
volume.all(type, type in ['name', 'configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral',
'persistentVolumeClaim', 'projected', 'secret']) &&
(!has(volume.secret) || (
volume.secret.all(member, member in ['secretName', 'items', 'defaultMode', 'optional']) &&
has(volume.secret.secretName) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "volume.secret.secretName") }})) &&
(!has(volume.projected) || (
volume.projected.all(member, member in ['sources', 'defaultMode']) &&
(!has(volume.projected.sources) || volume.projected.sources.all(source,
source.all(type, type in ['clusterTrustBundle', 'configMap', 'downwardAPI', 'secret', 'serviceAccountToken']) &&
(!has(source.secret) || (
source.secret.all(member, member in ['name', 'items', 'optional']) && has(source.secret.name) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "source.secret.name") }})))))) &&
(!has(volume.csi) || (
volume.csi.all(member, member in ['driver', 'readOnly', 'fsType', 'volumeAttributes', 'nodePublishSecretRef']) &&
(!has(volume.csi.nodePublishSecretRef) || (
volume.csi.nodePublishSecretRef.all(member, member == 'name') && has(volume.csi.nodePublishSecretRef.name) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "volume.csi.nodePublishSecretRef.name") }})))))
{{- end }}

{{- define "lambdadnn.celAdmitsEnv" -}}
variables.pod.containers.all(container, !has(container.env) || container.env.all(each, !has(each.valueFrom) || (
each.valueFrom.all(source, source in ['configMapKeyRef', 'fieldRef', 'resourceFieldRef', 'secretKeyRef']) &&
(!has(each.valueFrom.secretKeyRef) || (
each.valueFrom.secretKeyRef.all(member, member in ['name', 'key', 'optional']) &&
has(each.valueFrom.secretKeyRef.name) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "each.valueFrom.secretKeyRef.name") }})))))
{{- end }}

{{/* (dict "list" LIST "name" NAME "field" FIELD "what" NOUN): the operator's sentence. */}}
{{- define "lambdadnn.podSentence" -}}
spec.podTemplate.{{ .field }}:{{ " " }}
{{- if .list -}}
only these {{ .what }} are allowed here: {{ join ", " (slice .list 0 (min 5 (len .list) | int)) }}
{{- if gt (len .list) 5 }}, and {{ sub (len .list) 5 }} more{{ end }}; leave out others
{{- else -}}
no {{ .what }} are allowed here; leave the field out
{{- end -}}
, or ask the administrator to extend jobs.allowed.{{ .name }} of the chart (--pod-rules of the operator)
{{- end }}

{{/* The validations of a ValidatingAdmissionPolicy, as a list in JSON; none where every name is allowed. */}}
{{- define "lambdadnn.podValidations" -}}
{{- $rules := include "lambdadnn.podRules" . | fromYaml }}
{{- $validations := list }}
{{- range list
  (list "spec.containers[].image" "images" "images" "lambdadnn.celAdmitsImages")
  (list "spec.serviceAccountName" "serviceAccounts" "service accounts" "")
  (list "spec.priorityClassName" "priorityClasses" "priority classes" "")
  (list "spec.tolerations" "tolerationKeys" "keys of taints" "lambdadnn.celAdmitsTolerations")
  (list "spec.nodeSelector" "nodeLabels" "labels of nodes" "lambdadnn.celAdmitsNodeSelector")
  (list "workers.tolerations" "tolerationKeys" "keys of taints" "lambdadnn.celAdmitsTolerations")
  (list "workers.nodeSelector" "nodeLabels" "labels of nodes" "lambdadnn.celAdmitsNodeSelector")
  (list "spec.affinity" "nodeLabels" "labels of nodes" "lambdadnn.celAdmitsAffinity")
  (list "spec.affinity.podAffinity" "affinityNamespaces" "other namespaces" "lambdadnn.celAdmitsAffinityNamespaces")
  (list "spec.affinity.podAntiAffinity" "affinityNamespaces" "other namespaces" "lambdadnn.celAdmitsAntiAffinityNamespaces")
  (list "spec.containers[].env" "secrets" "Secrets" "lambdadnn.celAdmitsEnv")
  (list "spec.volumes" "volumeTypes" "types of volumes" "lambdadnn.celAdmitsVolumeTypes")
  (list "spec.volumes" "secrets" "Secrets" "lambdadnn.celAdmitsMountedSecrets")
  (list "spec.runtimeClassName" "runtimeClasses" "runtime classes" "")
  (list "spec.schedulerName" "schedulers" "schedulers" "")
  (list "spec.containers[].resources" "resources" "resources" "lambdadnn.celAdmitsResources")
}}
{{- $field := index . 0 }}
{{- $name := index . 1 }}
{{- if hasKey $rules $name }}
{{- $list := get $rules $name }}
{{- if not (has "*" $list) }}
{{- $of := regexFind "^[a-z]+\\.[a-zA-Z]+" $field | replace "spec." "variables.pod." | replace "workers." "variables.workers." }}
{{- $admits := "" }}
{{- with index . 3 }}
{{- $admits = include . (dict "list" $list "of" $of) }}
{{- else }}
{{- $admits = include "lambdadnn.celAdmits" (dict "list" $list "name" $of) }}
{{- end }}
{{- $message := include "lambdadnn.podSentence" (dict "list" $list "name" $name "field" $field "what" (index . 2)) }}
{{- $expression := printf "!has(%s) || (%s)" $of ($admits | replace "\n" " ") }}
{{- if hasPrefix "workers." $field }}
{{- $expression = printf "!has(object.spec.podTemplate.workers) || %s" $expression }}
{{- end }}
{{- $validations = append $validations (dict "expression" $expression "message" $message "reason" "Forbidden") }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $validations }}
{{- end }}
