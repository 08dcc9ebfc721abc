{{- define "session-service.selector" -}}
app.kubernetes.io/name: session-service
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The metadata of an object. The argument is a list: the root context, and the suffix that is appended to the release's name. */}}
{{- define "session-service.metadata" -}}
{{- $root := first . -}}
name: {{ $root.Release.Name }}{{ last . }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "session-service.selector" $root | nindent 2 }}
  app.kubernetes.io/managed-by: {{ $root.Release.Service }}
  helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{- define "session-service.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else if .Values.image.tag }}:{{ .Values.image.tag }}
{{- end }}
{{- end }}
