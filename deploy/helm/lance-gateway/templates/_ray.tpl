{{/* Fails for values with which the Ray cluster could not work for the gateway. */}}
{{- define "lance-gateway.checkRay" -}}
{{- $config := .Values.config -}}
{{- $variables := list -}}
{{- range .Values.env }}{{ $variables = append $variables .name }}{{ end -}}
{{- if not .Values.ray.addresses }}
{{- fail "ray.enabled needs ray.addresses, such as [http://lance-gateway-ray-head-svc:8265]" }}
{{- end }}
{{- if $config.databases }}
{{- fail "ray is for a gateway with one catalog: with config.databases, give the options of the cluster in each of them" }}
{{- end }}
{{- if ne ($config.backend | default "dir") "dir" }}
{{- fail (printf "ray is for tables of the gateway itself, and config.backend is %s" $config.backend) }}
{{- end }}
{{- if not .Values.ray.gatewayUrl }}
{{- if include "lance-gateway.isSidecar" . }}
{{- fail "ray needs ray.gatewayUrl here, the address of another gateway of the catalog: the cluster does not reach a sidecar" }}
{{- end }}
{{- if .Values.tlsSecret }}
{{- fail "ray needs ray.gatewayUrl here: drivers call the gateway by a name of the certificate in tlsSecret" }}
{{- end }}
{{- end }}
{{- $isRootKnown := or $config.root (not (or .Values.envFrom (has "LANCE_GATEWAY_ROOT" $variables))) -}}
{{- $root := $config.root | default "/data/lance-data" -}}
{{- $isInVolume := and $isRootKnown (not (contains "://" $root)) (or (eq $root "/data") (hasPrefix "/data/" $root) (not (hasPrefix "/" $root))) -}}
{{- $persistence := .Values.persistence -}}
{{- $isShared := and $persistence.enabled (or $persistence.existingClaim (has "ReadWriteMany" $persistence.accessModes)) -}}
{{- if and $isInVolume (not $isShared) }}
{{- fail "the Ray cluster opens the files of the tables: set config.root to a bucket, or use persistence with the access mode ReadWriteMany and mount the volume at /data on the cluster" }}
{{- end }}
{{- if and .Values.ray.functions.enabled (not (or (include "lance-gateway.saysWhoMayCall" .) .Values.envFrom)) }}
{{- fail "ray.functions would run code of every pod that the network policy admits: set config.auth, or config.insecure to true" }}
{{- end }}
{{- end }}

{{/* Whether files for the cluster come from Secrets. */}}
{{- define "lance-gateway.rayFiles" -}}
{{- with .Values.ray -}}
{{- if and .enabled (or .tokenSecret (and .functions.enabled .functions.keySecret)) }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* The options of the cluster. */}}
{{- define "lance-gateway.rayConfig" -}}
{{- include "lance-gateway.checkRay" . -}}
{{- $service := printf "http://%s.%s.svc:%v" (include "lance-gateway.name" .) .Release.Namespace .Values.service.port -}}
{{- with .Values.ray -}}
job-engine: ray
ray-address: {{- toYaml .addresses | nindent 2 }}
ray-gateway-url: {{ .gatewayUrl | default $service }}
ray-workers: {{ int64 .workers }}
job-engine-min-rows: {{ int64 .minRows }}
{{- if .tokenSecret }}
ray-token-file: /etc/lance-gateway/ray/token
{{- end }}
{{- with .kinds }}
job-engine-kinds: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .importLocations }}
import-location: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .runtimeEnv }}
ray-runtime-env: /etc/lance-gateway/config/ray-runtime-env.json
{{- end }}
{{- if .functions.enabled }}
functions: "on"
{{- if .functions.keySecret }}
function-secret-key-file: /etc/lance-gateway/ray/function-key
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The volume with the token of the cluster and the key of the functions' secrets. */}}
{{- define "lance-gateway.rayVolume" -}}
{{- with .Values.ray -}}
name: ray
projected:
  defaultMode: 0440
  sources:
    {{- if .tokenSecret }}
    - secret:
        name: {{ .tokenSecret }}
        items: [{key: {{ .tokenKey }}, path: token}]
    {{- end }}
    {{- if and .functions.enabled .functions.keySecret }}
    - secret:
        name: {{ .functions.keySecret }}
        items: [{key: {{ .functions.keyKey }}, path: function-key}]
    {{- end }}
{{- end }}
{{- end }}
