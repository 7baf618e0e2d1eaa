{{- define "mooring.name" -}}
{{ .Values.name | default .Release.Name }}
{{- end }}

{{- define "mooring.selector" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ include "mooring.name" . }}
{{- end }}

{{- define "mooring.labels" -}}
{{ include "mooring.selector" . }}
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "mooring.controllerSelector" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ include "mooring.name" . }}-controllers
{{- end }}

{{- define "mooring.controllerLabels" -}}
{{ include "mooring.controllerSelector" . }}
app.kubernetes.io/component: controllers
{{- end }}

{{- define "mooring.subjects" -}}
- kind: ServiceAccount
  name: {{ include "mooring.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "mooring.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}
{{- end }}

{{- /* As the command line makes it: the configuration, then each plugin with its name, by newlines. */ -}}
{{- define "mooring.checksum" -}}
{{- $files := list .Values.config -}}
{{- range $name, $text := .Values.plugins -}}
{{- $files = append $files (printf "%s\n%s" $name $text) -}}
{{- end -}}
{{ join "\n" $files | sha256sum }}
{{- end }}
