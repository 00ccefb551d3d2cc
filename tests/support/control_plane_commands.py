# SPDX-License-Identifier: Apache-2.0
"""The command lines that every control plane of the tests shares: with nodes (tests/cluster) and
without (kube_control_plane.py). What differs is added by the caller."""
SERVICE_RANGE = "10.96.0.0/16"


def etcd_command(program, data, client, peer):
    """`client` and `peer` are the URLs that it listens on. Nothing of it outlives the test: no fsync."""
    return [program, "--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls",
            client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}", "--unsafe-no-fsync", "--log-level", "warn"]


def api_server_command(program, etcd, port, pki, authorization):
    """`pki` holds the pairs ca, apiserver and sa; `authorization` is RBAC or Node,RBAC."""
    return [program, "--etcd-servers", etcd, "--secure-port", str(port),
            "--service-cluster-ip-range", SERVICE_RANGE,
            "--tls-cert-file", pki / "apiserver.crt", "--tls-private-key-file",
            pki / "apiserver.key", "--client-ca-file", pki / "ca.crt", "--authorization-mode",
            authorization, "--service-account-issuer",
            "https://kubernetes.default.svc.cluster.local", "--service-account-key-file",
            pki / "sa.pub", "--service-account-signing-key-file", pki / "sa.key"]


def component_command(program, kubeconfig):
    """A client of the API server that no other instance competes with."""
    return [program, "--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig,
            "--authorization-kubeconfig", kubeconfig, "--leader-elect=false", "--bind-address",
            "127.0.0.1"]


def controller_manager_command(program, kubeconfig, pki, controllers):
    return component_command(program, kubeconfig) + [
        "--service-account-private-key-file", pki / "sa.key", "--root-ca-file", pki / "ca.crt",
        "--use-service-account-credentials", "--controllers", controllers]
