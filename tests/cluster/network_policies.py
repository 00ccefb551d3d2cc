# SPDX-License-Identifier: Apache-2.0
"""Enforces the NetworkPolicies of the test cluster, which its own network accepts and ignores.

Policies, pods and namespaces are read from the API server and become rules of iptables on each node:
a chain for each pod and direction that a policy isolates, which lets through what the union of its
policies admits and refuses the rest, so that a caller gets "no route to host" at once. What is
published of the semantics (kubernetes.io, Network Policies; the API reference of
networking.k8s.io/v1) is what tests/cluster/network_policies_test.py holds, case by case.

Traffic between a pod and the node that it runs on never passes these chains, as Kubernetes
promises; so a pod of node n1 reaches the API server, which is a process of n1. Connections that
stand when a policy comes are left alone.
"""
import dataclasses
import hashlib
import ipaddress
import threading

import settings

MAIN = "TEST-POLICIES"
PREFIX = "TP-"
POLL_SECONDS = 0.3
POLICIES = "/apis/networking.k8s.io/v1/networkpolicies"


@dataclasses.dataclass(frozen=True)
class Pod:
    namespace: str
    name: str
    labels: dict
    address: str
    node: str
    ports: dict  # (name, protocol): number

    @property
    def network(self):
        return ipaddress.ip_network(self.address)


def pod_of(item):
    """A Pod of an object of the API; None for one that has no network of its own."""
    status, spec = item.get("status", {}), item["spec"]
    if not status.get("podIP") or spec.get("hostNetwork") or \
            status.get("phase") in ("Succeeded", "Failed"):
        return None
    ports = {(port["name"], port.get("protocol", "TCP")): port["containerPort"]
             for container in spec["containers"] for port in container.get("ports", [])
             if "name" in port}
    meta = item["metadata"]
    return Pod(meta["namespace"], meta["name"], meta.get("labels") or {}, status["podIP"],
               spec.get("nodeName", ""), ports)


def _requirement(each, labels):
    value = labels.get(each["key"])
    operator = each["operator"]
    if operator == "In":
        return value in each["values"]
    if operator == "NotIn":
        return value not in each["values"]  # also where there is no such label
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    raise settings.ClusterError(f"a selector has the operator {operator}, which is none")


def selects(selector, labels):
    """Whether a LabelSelector matches; an empty one matches everything."""
    return all(labels.get(key) == value
               for key, value in (selector.get("matchLabels") or {}).items()) and \
        all(_requirement(each, labels) for each in selector.get("matchExpressions") or [])


def directions(spec):
    """What the policy isolates for: without policyTypes always ingress, and egress if it has rules."""
    types = spec.get("policyTypes")
    return types if types else ["Ingress"] + (["Egress"] if spec.get("egress") else [])


def block_of(block):
    """The networks of an ipBlock, what it excepts taken out."""
    left = [ipaddress.ip_network(block["cidr"], strict=False)]
    for each in block.get("except") or []:
        taken = ipaddress.ip_network(each, strict=False)
        left = [part for network in left for part in (
            network.address_exclude(taken) if taken.subnet_of(network)
            else [] if network.subnet_of(taken) else [network])]
    return left


class World:
    """What policies are about, and what follows from them."""

    def __init__(self, pods, namespaces, policies):
        self.pods = pods
        self.namespaces = namespaces  # {name: labels}
        self.policies = policies

    @classmethod
    def read(cls, kubernetes):
        items = [kubernetes.get(path)["items"]
                 for path in ("/api/v1/pods", "/api/v1/namespaces", POLICIES)]
        return cls([pod for pod in map(pod_of, items[0]) if pod is not None],
                   {item["metadata"]["name"]: item["metadata"].get("labels") or {}
                    for item in items[1]}, items[2])

    def _peers(self, peer, namespace):
        """(network, pod or None) of everything that the peer is."""
        if "ipBlock" in peer:
            return [(network, None) for network in block_of(peer["ipBlock"])]
        spaces = peer.get("namespaceSelector")
        pods = peer.get("podSelector", {})
        return [(pod.network, pod) for pod in self.pods
                if (pod.namespace == namespace if spaces is None
                    else selects(spaces, self.namespaces[pod.namespace]))
                and selects(pods, pod.labels)]

    @staticmethod
    def _ports(ports, destination):
        """[(protocol, first, last)], first None = all; a name means what `destination` calls so."""
        found = []
        for each in ports:
            protocol, port = each.get("protocol", "TCP"), each.get("port")
            if isinstance(port, str):
                port = destination.ports.get((port, protocol)) if destination else None
                if port is None:
                    continue
            found.append((protocol, port, each.get("endPort", port)))
        return found

    def admitted(self, pod, direction):
        """What may reach the pod, or what it may reach: [(network or None, (protocol, first, last) or
        None)], None = any; None in place of the list where no policy isolates the pod."""
        ruling = [policy for policy in self.policies
                  if policy["metadata"]["namespace"] == pod.namespace
                  and selects(policy["spec"].get("podSelector", {}), pod.labels)
                  and direction in directions(policy["spec"])]
        if not ruling:
            return None
        found = []
        for policy in ruling:
            for rule in policy["spec"].get(direction.lower()) or []:
                found += self._rule(rule, direction, pod, policy["metadata"]["namespace"])
        return found

    def _rule(self, rule, direction, pod, namespace):
        ports = rule.get("ports")
        peers = rule.get("from" if direction == "Ingress" else "to")
        if peers:
            ends = [end for peer in peers for end in self._peers(peer, namespace)]
        else:
            ends = [(None, None)]
            if direction == "Egress" and any(isinstance(each.get("port"), str)
                                             for each in ports or []):
                # A name means something at pods alone.
                ends += [(each.network, each) for each in self.pods]
        found = []
        for network, end in ends:
            if not ports:
                found.append((network, None))
                continue
            destination = pod if direction == "Ingress" else end
            found += [(network, port) for port in self._ports(ports, destination)]
        return found

    def rules(self, node):
        """The chains of one node: {chain: [rule]}, the main one first."""
        chains = {MAIN: ["-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"]}
        for pod in sorted((each for each in self.pods if each.node == node),
                          key=lambda each: (each.namespace, each.name)):
            own = f"{pod.address}/32"
            for direction, here, there in (("Egress", "-s", "-d"), ("Ingress", "-d", "-s")):
                admitted = self.admitted(pod, direction)
                if admitted is None:
                    continue
                key = f"{pod.namespace}/{pod.name}/{pod.address}".encode()
                chain = PREFIX + direction[0] + "-" + hashlib.sha256(key).hexdigest()[:16]
                # A pod always reaches itself, also by way of a service.
                chains[MAIN] += [f"{here} {own} ! {there} {own} -j {chain}"]
                chains[chain] = [_match(there, *each) for each in dict.fromkeys(admitted)
                                 if each[0] is None or each[0].version == 4]
                chains[chain].append("-j REJECT --reject-with icmp-admin-prohibited")
        return chains


def _match(end, network, port):
    words = [] if network is None else [end, str(network)]
    if port is not None:
        protocol, first, last = port
        words += ["-p", protocol.lower()]
        if first is not None:
            words += ["--dport", str(first) if first == last else f"{first}:{last}"]
    return " ".join([*words, "-j RETURN"])


def restore_text(chains, before=()):
    """Input of `iptables-restore --noflush`; chains of `before` that are no more go."""
    stale = sorted(set(before) - set(chains))
    lines = ["*filter", *(f":{chain} - [0:0]" for chain in [*chains, *stale])]
    lines += [f"-A {chain} {rule}" for chain, rules in chains.items() for rule in rules]
    return "\n".join([*lines, *(f"-X {chain}" for chain in stale), "COMMIT", ""])


class Enforcer:
    """Keeps the rules of all nodes as the API server says, from start() to stop(), or once by sync()."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.lock = threading.Lock()
        self.made = {}  # node: its chains
        self.said = {}
        self.stopping = threading.Event()
        self.thread = None

    def sync(self):
        """All that is true at the API server when this is called is enforced when it returns."""
        with self.lock:
            world = World.read(self.cluster.kubernetes)
            for node in settings.nodes(self.cluster.count()):
                chains = world.rules(node.name)
                text = restore_text(chains)
                if self.said.get(node.name) == text:
                    continue
                self._run(node.name, "iptables-restore", "--noflush", "--wait",
                          text=restore_text(chains, self.made.get(node.name, ())))
                if self._run(node.name, "iptables", "-w", "-C", "FORWARD", "-j", MAIN,
                             check=False).returncode != 0:
                    self._run(node.name, "iptables", "-w", "-I", "FORWARD", "1", "-j", MAIN)
                self.made[node.name], self.said[node.name] = list(chains), text

    def _run(self, node, *words, text=None, check=True):
        return self.cluster.network.run(node, *words, text=text, check=check)

    def start(self):
        self.sync()
        self.stopping.clear()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.stopping.wait(POLL_SECONDS):
            try:
                self.sync()
            except Exception as error:  # the next resync may succeed
                settings.log(f"cannot look at the network policies: {error}")

    def stop(self):
        """Nothing is enforced any more."""
        self.stopping.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        with self.lock:
            for node, chains in self.made.items():
                self._run(node, "iptables", "-w", "-D", "FORWARD", "-j", MAIN, check=False)
                self._run(node, "iptables-restore", "--noflush", "--wait",
                          text=restore_text({}, chains))
            self.made, self.said = {}, {}
