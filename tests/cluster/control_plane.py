# SPDX-License-Identifier: Apache-2.0
"""Certificates, etcd, kube-apiserver, kube-controller-manager and kube-scheduler, all in the
namespace of node n1: webhooks must be reached at service addresses, which its kube-proxy makes."""
import ssl

import settings  # first: it says where tests/support is
from certificates import Authority, write_kubeconfig
from control_plane_commands import api_server_command, component_command, controller_manager_command, etcd_command
from processes import Part, http_probe
from settings import API_SERVER, CONTROL_NODE, Node, program

CERTIFICATE_DAYS = 365
# Kubernetes' default is 300; tests of lost nodes should not have to wait for that.
TOLERATION_SECONDS = "30"

_USERS = {
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
    "dns": "/CN=cluster-dns",
    "ingress": "/CN=cluster-ingress",
}


def make_certificates(config, nodes):
    """The pairs and kubeconfigs that are missing; True when there were some."""
    authority = Authority(config.pki, CERTIFICATE_DAYS)

    def leaf(name, subject, names=""):
        if (config.pki / f"{name}.crt").exists():
            return False
        authority.leaf(name, subject, names)
        return True

    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
             "kubernetes.default.svc.cluster.local"]
    addresses = ["127.0.0.1", Node(1).address, "10.96.0.1"]
    made = leaf("apiserver", "/CN=kube-apiserver",
                ",".join([f"DNS:{name}" for name in names] +
                         [f"IP:{address}" for address in addresses]))
    made |= leaf("apiserver-kubelet", "/O=system:masters/CN=apiserver-kubelet")
    made |= leaf("front-proxy", "/CN=front-proxy-client")
    if not (config.pki / "sa.pub").exists():
        authority.service_account_keys()
    for node in nodes:
        made |= leaf(node.name, f"/O=system:nodes/CN=system:node:{node.name}",
                     f"DNS:{node.name},IP:{node.address}")
    for user, subject in _USERS.items():
        made |= leaf(user, subject)
    for user in [*_USERS, *(node.name for node in nodes)]:
        write_kubeconfig(config.kubeconfig(user), API_SERVER, config.pki, user)
    return made


def client_context(config, leaf="admin"):
    context = ssl.create_default_context(cafile=config.pki / "ca.crt")
    context.load_cert_chain(config.pki / f"{leaf}.crt", config.pki / f"{leaf}.key")
    return context


def _any_certificate():
    """For health ports of components, whose certificates are their own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _api_server_flags(config):
    pki = config.pki
    return [
        "--advertise-address", Node(1).address, "--allow-privileged=true",
        "--enable-admission-plugins", "NodeRestriction",
        "--kubelet-certificate-authority", pki / "ca.crt",
        "--kubelet-client-certificate", pki / "apiserver-kubelet.crt",
        "--kubelet-client-key", pki / "apiserver-kubelet.key",
        "--kubelet-preferred-address-types", "InternalIP",
        "--requestheader-client-ca-file", pki / "ca.crt",
        "--requestheader-allowed-names", "front-proxy-client",
        "--requestheader-username-headers", "X-Remote-User",
        "--requestheader-group-headers", "X-Remote-Group",
        "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
        "--proxy-client-cert-file", pki / "front-proxy.crt",
        "--proxy-client-key-file", pki / "front-proxy.key",
        "--default-not-ready-toleration-seconds", TOLERATION_SECONDS,
        "--default-unreachable-toleration-seconds", TOLERATION_SECONDS]


def store_and_server(config):
    """etcd and the API server; the second waits for the first by itself."""
    versions = settings.versions()
    etcd = "http://127.0.0.1:2379"
    return [
        Part("etcd", CONTROL_NODE,
             etcd_command(program("etcd"), config.run / "etcd", etcd, "http://127.0.0.1:2380") +
             ["--quota-backend-bytes", str(2 << 30)],
             http_probe("127.0.0.1:2379", "/health"), versions["etcd"]),
        Part("kube-apiserver", CONTROL_NODE,
             api_server_command(program("kube-apiserver"), etcd, 6443, config.pki, "Node,RBAC") +
             _api_server_flags(config),
             http_probe(f"{Node(1).address}:6443", "/readyz", lambda: client_context(config)),
             versions["kubernetes"]),
    ]


def controllers(config):
    versions = settings.versions()
    pki = config.pki
    manager = controller_manager_command(
        program("kube-controller-manager"), config.kubeconfig("controller-manager"), pki,
        "*,-node-ipam-controller,-cloud-node-lifecycle-controller,-ttl-controller") + [
            "--cluster-signing-cert-file", pki / "ca.crt",
            "--cluster-signing-key-file", pki / "ca.key"]
    return [
        Part("kube-controller-manager", CONTROL_NODE, manager,
             http_probe("127.0.0.1:10257", "/healthz", _any_certificate), versions["kubernetes"]),
        Part("kube-scheduler", CONTROL_NODE,
             component_command(program("kube-scheduler"), config.kubeconfig("scheduler")),
             http_probe("127.0.0.1:10259", "/healthz", _any_certificate),
             versions["kubernetes-node"]),
    ]
