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

{{- define "lambdadnn.celAdmitsTolerations" -}}
variables.runtime.tolerations.all(each,
(has(each.key) && {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "each.key") }}))
{{- end }}

{{- define "lambdadnn.celAdmitsNodeSelector" -}}
variables.runtime.nodeSelector.all(key, {{ include "lambdadnn.celAdmits" (dict "list" .list "name" "key") }})
{{- end }}

{{/* What is not known is refused: decoders of pods in Go also take nodeaffinity for nodeAffinity. */}}
{{- define "lambdadnn.celAdmitsAffinity" -}}
{{- $nodes := "variables.runtime.affinity.nodeAffinity" }}
{{- $required := printf "%s.requiredDuringSchedulingIgnoredDuringExecution" $nodes }}
{{- $preferred := printf "%s.preferredDuringSchedulingIgnoredDuringExecution" $nodes -}}
variables.runtime.affinity.all(kind, kind in ['nodeAffinity', 'podAffinity', 'podAntiAffinity']) &&
(!has({{ $nodes }}) || ({{ $nodes }}.all(kind, kind in
['requiredDuringSchedulingIgnoredDuringExecution', 'preferredDuringSchedulingIgnoredDuringExecution']) &&
(!has({{ $required }}) || ({{ $required }}.all(member, member == 'nodeSelectorTerms') &&
(!has({{ $required }}.nodeSelectorTerms) || {{ $required }}.nodeSelectorTerms.all(term,
{{ include "lambdadnn.celAdmitsTerm" (dict "list" .list "of" "term") }})))) &&
(!has({{ $preferred }}) || {{ $preferred }}.all(term,
term.all(member, member in ['weight', 'preference']) && (!has(term.preference) ||
{{ include "lambdadnn.celAdmitsTerm" (dict "list" .list "of" "term.preference") }})))))
{{- end }}

{{- define "lambdadnn.celAdmitsEnv" -}}
variables.runtime.env.all(each, !has(each.valueFrom) || (
each.valueFrom.all(source, source in ['configMapKeyRef', 'fieldRef', 'resourceFieldRef', 'secretKeyRef']) &&
(!has(each.valueFrom.secretKeyRef) || (
each.valueFrom.secretKeyRef.all(member, member in ['name', 'key', 'optional']) &&
has(each.valueFrom.secretKeyRef.name) &&
{{ include "lambdadnn.celAdmits" (dict "list" .list "name" "each.valueFrom.secretKeyRef.name") }}))))
{{- end }}

{{/* (dict "list" LIST "name" NAME "field" FIELD "what" NOUN): the operator's sentence. */}}
{{- define "lambdadnn.podSentence" -}}
spec.runtime.{{ .field }}:{{ " " }}
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
  (list "image" "images" "images" "")
  (list "serverImage" "images" "images" "")
  (list "serviceAccountName" "serviceAccounts" "service accounts" "")
  (list "priorityClassName" "priorityClasses" "priority classes" "")
  (list "tolerations" "tolerationKeys" "keys of taints" "lambdadnn.celAdmitsTolerations")
  (list "nodeSelector" "nodeLabels" "labels of nodes" "lambdadnn.celAdmitsNodeSelector")
  (list "affinity" "nodeLabels" "labels of nodes" "lambdadnn.celAdmitsAffinity")
  (list "env" "secrets" "Secrets" "lambdadnn.celAdmitsEnv")
}}
{{- $field := index . 0 }}
{{- $name := index . 1 }}
{{- if hasKey $rules $name }}
{{- $list := get $rules $name }}
{{- if not (has "*" $list) }}
{{- $of := printf "variables.runtime.%s" $field }}
{{- $admits := "" }}
{{- with index . 3 }}
{{- $admits = include . (dict "list" $list) }}
{{- else }}
{{- $admits = include "lambdadnn.celAdmits" (dict "list" $list "name" $of) }}
{{- end }}
{{- $message := include "lambdadnn.podSentence" (dict "list" $list "name" $name "field" $field "what" (index . 2)) }}
{{- $expression := printf "!has(%s) || (%s)" $of ($admits | replace "\n" " ") }}
{{- $validations = append $validations (dict "expression" $expression "message" $message "reason" "Forbidden") }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $validations }}
{{- end }}
