#!/bin/sh
# Prints the monitors, the alerts and the dashboard as manifests: sh deploy/kubernetes/monitoring.sh | kubectl apply -n rivulet -f -
set -eu
here=$(dirname "$0")
cat "$here/monitors.yaml"
printf '%s\n' '---' 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata: { name: rivulet }' 'spec:'
sed 's/^/  /' "$here/../../ops/prometheus/alerts.yml"
printf '%s\n' '---' 'apiVersion: v1' 'kind: ConfigMap' 'metadata: { name: rivulet-dashboard, labels: { grafana_dashboard: "1" } }' 'data:' '  rivulet.json: |'
sed 's/^/    /' "$here/../../ops/grafana/rivulet.json"
