# SPDX-License-Identifier: Apache-2.0
"""CoreDNS for the cluster's names, a process of node n1 behind the service kube-dns."""
import settings
from processes import Part, http_probe
from settings import CONTROL_NODE, Node, program


def corefile(config):
    address = Node(1).address
    return f"""cluster.local:53 {{
  bind {address}
  errors
  ready 127.0.0.1:8181
  cache 5
  kubernetes cluster.local {{
    kubeconfig {config.kubeconfig("dns")}
    ttl 5
  }}
}}
.:53 {{
  bind {address}
  errors
  cache 30
}}
"""


def service(name, namespace, ports, **spec):
    """Objects that lead the service's ports to the same ports (or `target`s) of node n1."""
    slice_ports = [{"name": port["name"], "port": port.get("target", port["port"]),
                    "protocol": port.get("protocol", "TCP")} for port in ports]
    service_ports = [{"name": port["name"], "port": port["port"],
                      "targetPort": port.get("target", port["port"]),
                      "protocol": port.get("protocol", "TCP")} for port in ports]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
         "spec": {"ports": service_ports, **spec}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
         "metadata": {"name": f"{name}-node", "namespace": namespace,
                      "labels": {"kubernetes.io/service-name": name}},
         "addressType": "IPv4", "ports": slice_ports,
         "endpoints": [{"addresses": [Node(1).address], "conditions": {"ready": True}}]},
    ]


def role(user, rules):
    """A cluster role for one of the cluster's own users."""
    return [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
         "metadata": {"name": user}, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
         "metadata": {"name": user},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
         "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]},
    ]


def objects():
    return [
        *service("kube-dns", "kube-system",
                 [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}],
                 clusterIP=settings.DNS_IP),
        *role("cluster-dns", [
            {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"],
             "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
             "verbs": ["list", "watch"]}]),
    ]


def part(config):
    (config.run / "Corefile").write_text(corefile(config))
    return Part("coredns", CONTROL_NODE, [program("coredns"), "-conf", config.run / "Corefile"],
                http_probe("127.0.0.1:8181", "/ready"), settings.versions()["coredns"])
