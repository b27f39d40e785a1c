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

{{/* Whether the configuration says who may call, or that everybody may. */}}
{{- define "lance-gateway.saysWhoMayCall" -}}
{{- $config := .Values.config -}}
{{- $isGiven := or (hasKey $config "auth") (hasKey $config "insecure") -}}
{{- range .Values.env }}{{ if has .name (list "LANCE_GATEWAY_AUTH" "LANCE_GATEWAY_INSECURE") }}{{ $isGiven = true }}{{ end }}{{ end -}}
{{- if $isGiven }}true{{ end -}}
{{- end }}

{{/* Whether only pods that the network policy admits reach the gateway. */}}
{{- define "lance-gateway.isInside" -}}
{{- if and .Values.networkPolicy.enabled (eq .Values.service.type "ClusterIP") (not .Values.ingress.enabled) (not .Values.httpRoute.enabled) }}true{{ end -}}
{{- end }}

{{/* The options that this chart decides; `config` overrides them where a key of the file may. */}}
{{- define "lance-gateway.config" -}}
{{- $own := dict -}}
{{- if not (or (include "lance-gateway.isSidecar" .) (include "lance-gateway.saysWhoMayCall" .) .Values.envFrom) }}
{{- if not (include "lance-gateway.isInside" .) }}
{{- fail "others than the pods that the network policy admits would reach a gateway without keys: set config.auth, or config.insecure to true" }}
{{- end }}
{{- $_ := set $own "insecure" true }}
{{- end }}
{{- if .Values.tlsSecret }}
{{- $_ := set $own "tls-cert" "/etc/lance-gateway/tls/tls.crt" }}
{{- $_ := set $own "tls-key" "/etc/lance-gateway/tls/tls.key" }}
{{- end }}
{{- if .Values.ray.enabled }}
{{- $own = merge $own (include "lance-gateway.rayConfig" . | fromYaml) }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.config) $own) }}
{{- end }}

{{/* The files of the config map. */}}
{{- define "lance-gateway.files" -}}
config.yaml: |
  {{- include "lance-gateway.config" . | nindent 2 }}
{{- if and .Values.ray.enabled .Values.ray.runtimeEnv }}
ray-runtime-env.json: {{ toJson .Values.ray.runtimeEnv | quote }}
{{- end }}
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
{{- $scheme := ternary "HTTP" "HTTPS" (empty .Values.tlsSecret) }}
{{- if $isSidecar }}
# The kubelet does not reach the loopback address of the pod, so a program in the container asks.
startupProbe:
  exec: {command: [node, /app/bin/lance-gateway.js, ready]}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 30
livenessProbe:
  # A gateway whose catalog cannot be reached is alive and not ready. The certificate is for other names than this address.
  exec:
    command:
      - node
      - --eval
      - process.env.NODE_TLS_REJECT_UNAUTHORIZED="0";fetch("{{ lower $scheme }}://127.0.0.1:2333/healthz").then(({ok})=>process.exit(ok?0:1))
  periodSeconds: 30
  timeoutSeconds: 10
readinessProbe:
  exec: {command: [node, /app/bin/lance-gateway.js, ready]}
  periodSeconds: 15
  timeoutSeconds: 5
{{- else }}
ports:
  - {name: gateway, containerPort: 2333}
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
  {{- ternary .Values.application.gatewayResources .Values.resources (not (empty $isSidecar)) | toYaml | nindent 2 }}
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
  {{- if include "lance-gateway.rayFiles" . }}
  - {name: ray, mountPath: /etc/lance-gateway/ray, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
