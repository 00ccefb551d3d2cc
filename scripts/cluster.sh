#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real Kubernetes with Knative Serving and MinIO on this one machine, without a container engine:
# every part is a process in network namespaces of the cluster's own. Needs root.
#
#   scripts/cluster.sh build                 build the parts that are missing (minutes, once)
#   scripts/cluster.sh up [--nodes N] [--openfaas]
#                                            start it, or repair it; 2 nodes by default
#   scripts/cluster.sh down                  take it down, without leaving a trace
#   scripts/cluster.sh status                parts, versions, memory, health; 1 if one is not well
#   scripts/cluster.sh load-image FILE...    give all nodes the images of docker or OCI archives
#   scripts/cluster.sh kubeconfig            print the administrator's kubeconfig's path
#   scripts/cluster.sh logs [PART] [-f]      list the parts' logs, or print (and follow) one
#   scripts/cluster.sh shell [COMMAND...]    run something inside: kubectl, curl to pods, tests
#
# Nothing outside reaches the cluster: clients run in `shell`, which sets KUBECONFIG, kubectl's PATH
# and AWS_* of the object store. LAMBDADNN_CLUSTER_DIR (/tmp/lambdadnn-cluster) is where everything
# of one cluster is, logs in log/, process ids in pid/. docs/development.md tells more.
set -euo pipefail

case "${1:-}" in
  "" | -h | --help) sed -n '3,18p' "$0" | cut -c3-; [ -n "${1:-}" ]; exit ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case "$1" in
  up | build) "$here/setup.sh" --cluster ;;
esac
exec /usr/bin/python3 "$here/../tests/cluster/main.py" "$@"
