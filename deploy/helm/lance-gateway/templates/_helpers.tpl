{{- define "lance-gateway.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "lance-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lance-gateway.labels" -}}
{{ include "lance-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "lance-gateway.isSidecar" -}}
{{- if .Values.application.containers }}true{{ end -}}
{{- end }}

{{/* The options that this chart decides; `config` overrides them where a key of the file may. */}}
{{- define "lance-gateway.config" -}}
{{- $own := dict -}}
{{- if .Values.tlsSecret }}
{{- $_ := set $own "tls-cert" "/etc/lance-gateway/tls/tls.crt" }}
{{- $_ := set $own "tls-key" "/etc/lance-gateway/tls/tls.key" }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.config) $own) }}
{{- end }}

{{/* The container of the gateway, for a pod of this chart. */}}
{{- define "lance-gateway.container" -}}
{{- $isSidecar := include "lance-gateway.isSidecar" . -}}
name: lance-gateway
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve]
{{- if $isSidecar }}
# Starts before the application's containers, which wait until it is ready, and ends after them.
restartPolicy: Always
{{- end }}
env:
  - name: LANCE_GATEWAY_CONFIG
    value: /etc/lance-gateway/config/config.yaml
  - name: LANCE_GATEWAY_HOST
    value: {{ ternary "127.0.0.1" "0.0.0.0" (not (empty $isSidecar)) | quote }}
  - name: LANCE_GATEWAY_PORT
    value: "2333"
  {{- if has .Values.config.backend (list "rest" "grpc") }}
  # The allocator of the image is for work on rows.
  - name: LD_PRELOAD
    value: ""
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $isSidecar }}
# The kubelet does not reach the loopback address of the pod, so the program asks itself.
startupProbe:
  exec: {command: [node, /app/bin/lance-gateway.js, ready]}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 30
readinessProbe:
  exec: {command: [node, /app/bin/lance-gateway.js, ready]}
  periodSeconds: 15
  timeoutSeconds: 5
{{- else }}
ports:
  - {name: gateway, containerPort: 2333}
{{- $scheme := ternary "HTTP" "HTTPS" (empty .Values.tlsSecret) }}
startupProbe:
  httpGet: {path: /healthz, port: gateway, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: gateway, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  # Twice this time is less than the drain delay.
  httpGet: {path: /readyz, port: gateway, scheme: {{ $scheme }}}
  periodSeconds: 2
  failureThreshold: 2
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
volumeMounts:
  - {name: config, mountPath: /etc/lance-gateway/config, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /data}
  {{- if .Values.filesSecret }}
  - {name: files, mountPath: /etc/lance-gateway/secrets, readOnly: true}
  {{- end }}
  {{- if .Values.tlsSecret }}
  - {name: tls, mountPath: /etc/lance-gateway/tls, readOnly: true}
  {{- end }}
{{- end }}
