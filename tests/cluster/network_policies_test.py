# SPDX-License-Identifier: Apache-2.0
"""The enforcer of NetworkPolicies against their published semantics, without root: the rules that it
would give to iptables are read as a kernel would read them, for one connection after another."""
import ipaddress
import re
import unittest

import network_policies
from network_policies import World, block_of, directions, pod_of, restore_text, selects

NODES = {"n1": "10.240.0.1", "n2": "10.240.0.2"}
OUTSIDE = "203.0.113.9"
SPACES = {"a": {"team": "red", "kubernetes.io/metadata.name": "a"},
          "b": {"team": "blue", "kubernetes.io/metadata.name": "b"}}


def pod(namespace, name, address, node="n1", ports=(), **labels):
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"ports": list(ports)}]},
            "status": {"podIP": address, "phase": "Running"}}


def policy(namespace="a", **spec):
    return {"metadata": {"namespace": namespace, "name": "p"}, "spec": {"podSelector": {}, **spec}}


WEB = pod("a", "web", "10.244.1.2", app="web", ports=[
    {"name": "http", "containerPort": 8080}, {"name": "names", "containerPort": 53, "protocol": "UDP"}])
CLIENT = pod("a", "client", "10.244.1.3", app="client")
FAR = pod("a", "far", "10.244.2.2", "n2", app="client", ports=[{"name": "http", "containerPort": 81}])
OTHER = pod("b", "other", "10.244.1.4", app="client")
FAR_OTHER = pod("b", "far-other", "10.244.2.3", "n2", app="web")
PODS = [WEB, CLIENT, FAR, OTHER, FAR_OTHER]


class Kernel:
    """Reads the text that iptables-restore gets on one node."""

    def __init__(self, text):
        self.chains = {name: [] for name in re.findall(r"(?m)^:(\S+) ", text)}
        for chain, rule in re.findall(r"(?m)^-A (\S+) (.*)$", text):
            self.chains[chain].append(rule.split())

    def lets_pass(self, packet):
        return self._walk(network_policies.MAIN, packet)

    def _walk(self, chain, packet):
        for words in self.chains[chain]:
            target = self._target(list(words), packet)
            if target is None:
                continue
            if target == "RETURN":
                return True
            if target == "REJECT" or not self._walk(target, packet):
                return False
        return True

    @staticmethod
    def _target(words, packet):
        """Where the rule sends the packet; None when it does not match."""
        negated = False
        while words:
            word = words.pop(0)
            if word == "!":
                negated = True
                continue
            value = words.pop(0)
            if word == "-j":
                return value
            if word in ("-s", "-d"):
                address = packet["from" if word == "-s" else "to"]
                matches = ipaddress.ip_address(address) in ipaddress.ip_network(value)
            elif word == "-p":
                matches = packet["protocol"].lower() == value
            elif word == "--dport":
                first, _, last = value.partition(":")
                matches = int(first) <= packet["port"] <= int(last or first)
            elif word == "-m":
                matches = value == "conntrack"
            elif word == "--ctstate":
                matches = packet["state"] in value.split(",")
            else:
                raise AssertionError(f"what is {word}?")
            if matches == negated:
                return None
            negated = False
        raise AssertionError("a rule without a target")


def address_of(end):
    return end["status"]["podIP"] if isinstance(end, dict) else NODES.get(end, end)


class Semantics(unittest.TestCase):
    def setUp(self):
        self.pods, self.spaces = list(PODS), dict(SPACES)
        self.policies = []

    def passes(self, source, target, port=80, protocol="TCP", state="NEW"):
        """Whether a packet gets from one end (a pod, the name of a node, an address) to another."""
        world = World([each for each in map(pod_of, self.pods) if each], self.spaces, self.policies)
        packet = {"from": address_of(source), "to": address_of(target), "port": port,
                  "protocol": protocol, "state": state}
        forwarded = []
        for end, peer in ((source, target), (target, source)):
            # What a node itself says to its own pod, and hears of it, is not forwarded.
            if isinstance(end, dict) and end["spec"]["nodeName"] != peer:
                forwarded.append(end["spec"]["nodeName"])
        return all(Kernel(restore_text(world.rules(node))).lets_pass(packet)
                   for node in dict.fromkeys(forwarded))

    def admits(self, source, target, **how):
        self.assertTrue(self.passes(source, target, **how), (source, target, how))

    def refuses(self, source, target, **how):
        self.assertFalse(self.passes(source, target, **how), (source, target, how))

    def test_without_policies_everything_passes(self):
        for end in (CLIENT, FAR, OTHER, OUTSIDE, "n2"):
            self.admits(end, WEB)
            self.admits(WEB, end)

    def test_a_policy_without_rules_isolates_from_everybody(self):
        self.policies = [policy(policyTypes=["Ingress"])]
        for end in (CLIENT, FAR, OTHER, OUTSIDE, "n2"):
            self.refuses(end, WEB)
        self.admits(WEB, OTHER)
        self.admits(WEB, OUTSIDE)

    def test_egress_alone_leaves_ingress_open(self):
        self.policies = [policy(policyTypes=["Egress"])]
        self.refuses(WEB, OUTSIDE)
        self.refuses(WEB, OTHER)
        self.admits(OTHER, WEB)
        self.admits(OUTSIDE, WEB)

    def test_other_namespaces_are_not_isolated(self):
        self.policies = [policy(policyTypes=["Ingress", "Egress"])]
        self.admits(OUTSIDE, OTHER)
        self.admits(OTHER, FAR_OTHER)

    def test_only_selected_pods_are_isolated(self):
        self.policies = [policy(podSelector={"matchLabels": {"app": "web"}}, policyTypes=["Ingress"])]
        self.refuses(CLIENT, WEB)
        self.admits(OTHER, CLIENT)

    def test_policy_types_follow_from_rules_where_they_are_missing(self):
        self.assertEqual(["Ingress"], directions({}))
        self.assertEqual(["Ingress"], directions({"egress": []}))
        self.assertEqual(["Ingress", "Egress"], directions({"egress": [{}]}))
        self.assertEqual(["Ingress"], directions({"egress": [{}], "policyTypes": ["Ingress"]}))
        self.policies = [policy(egress=[{"to": [{"podSelector": {}}]}])]
        self.refuses(WEB, OUTSIDE)
        self.refuses(OUTSIDE, WEB)  # ingress, too, though it has no rules for it
        self.policies = [policy(egress=[{"to": [{"podSelector": {}}]}], policyTypes=["Ingress"])]
        self.admits(WEB, OUTSIDE)

    def test_an_empty_rule_admits_everything(self):
        self.policies = [policy(ingress=[{}])]
        for end in (CLIENT, OTHER, OUTSIDE):
            self.admits(end, WEB)
            self.admits(end, WEB, protocol="UDP")

    def test_empty_lists_of_a_rule_are_as_missing_ones(self):
        self.policies = [policy(ingress=[{"from": [], "ports": []}])]
        self.admits(OUTSIDE, WEB)

    def test_a_pod_selector_alone_means_the_policys_namespace(self):
        self.policies = [policy(ingress=[{"from": [{"podSelector": {"matchLabels": {
            "app": "client"}}}]}])]
        self.admits(CLIENT, WEB)
        self.admits(FAR, WEB)
        self.refuses(OTHER, WEB)  # the same label elsewhere
        self.policies = [policy(ingress=[{"from": [{"podSelector": {}}]}])]
        self.admits(CLIENT, WEB)
        self.refuses(OTHER, WEB)
        self.refuses(OUTSIDE, WEB)

    def test_a_namespace_selector_alone_means_all_its_pods(self):
        self.policies = [policy(ingress=[{"from": [{"namespaceSelector": {"matchLabels": {
            "team": "blue"}}}]}])]
        self.admits(OTHER, WEB)
        self.admits(FAR_OTHER, WEB)
        self.refuses(CLIENT, WEB)  # its own namespace has no part in it
        self.policies = [policy(ingress=[{"from": [{"namespaceSelector": {}}]}])]
        self.admits(OTHER, WEB)
        self.admits(CLIENT, WEB)
        self.refuses(OUTSIDE, WEB)  # no pod

    def test_both_in_one_peer_must_hold(self):
        both = {"namespaceSelector": {"matchLabels": {"team": "blue"}},
                "podSelector": {"matchLabels": {"app": "client"}}}
        self.policies = [policy(ingress=[{"from": [both]}])]
        self.admits(OTHER, WEB)
        self.refuses(FAR_OTHER, WEB)
        self.refuses(CLIENT, WEB)

    def test_two_peers_are_either(self):
        self.policies = [policy(ingress=[{"from": [
            {"namespaceSelector": {"matchLabels": {"team": "blue"}}},
            {"podSelector": {"matchLabels": {"app": "client"}}}]}])]
        self.admits(OTHER, WEB)
        self.admits(FAR_OTHER, WEB)
        self.admits(CLIENT, WEB)
        self.refuses(OUTSIDE, WEB)

    def test_a_peer_that_is_nobody_admits_nobody(self):
        self.policies = [policy(ingress=[{"from": [{"podSelector": {"matchLabels": {
            "app": "none"}}}]}])]
        self.refuses(CLIENT, WEB)
        self.refuses(OUTSIDE, WEB)

    def test_expressions_of_selectors(self):
        def expression(operator, *values):
            return {"matchExpressions": [{"key": "app", "operator": operator,
                                          **({"values": list(values)} if values else {})}]}
        for selector, web, none in ((expression("In", "web", "x"), True, False),
                                    (expression("In", "x"), False, False),
                                    (expression("NotIn", "web"), False, True),
                                    (expression("NotIn", "x"), True, True),
                                    (expression("Exists"), True, False),
                                    (expression("DoesNotExist"), False, True)):
            self.assertEqual(web, selects(selector, {"app": "web"}), selector)
            self.assertEqual(none, selects(selector, {}), selector)
        mixed = {**expression("Exists"), "matchLabels": {"tier": "1"}}
        self.assertFalse(selects(mixed, {"app": "web"}))
        self.assertTrue(selects(mixed, {"app": "web", "tier": "1"}))
        self.assertTrue(selects({}, {}))
        with self.assertRaisesRegex(network_policies.settings.ClusterError, "Near"):
            selects(expression("Near"), {})

    def test_a_block_admits_its_addresses_but_for_what_it_excepts(self):
        self.policies = [policy(ingress=[{"from": [{"ipBlock": {
            "cidr": "203.0.113.0/24", "except": ["203.0.113.8/30", "203.0.113.64/26"]}}]}])]
        for last in (0, 7, 12, 63, 128, 255):
            self.admits(f"203.0.113.{last}", WEB)
        for last in (8, 11, 64, 127):
            self.refuses(f"203.0.113.{last}", WEB)
        self.refuses("203.0.112.255", WEB)
        self.assertEqual([], block_of({"cidr": "10.0.0.0/24", "except": ["10.0.0.0/24"]}))
        self.assertEqual([], block_of({"cidr": "10.0.0.0/24", "except": ["10.0.0.0/25",
                                                                       "10.0.0.0/16"]}))

    def test_a_block_may_be_of_pods_and_of_the_other_internet_protocol(self):
        self.policies = [policy(egress=[{"to": [{"ipBlock": {"cidr": "10.244.0.0/16"}},
                                                {"ipBlock": {"cidr": "fd00::/8"}}]}])]
        self.admits(WEB, FAR_OTHER)
        self.refuses(WEB, OUTSIDE)

    def test_ports_bound_a_rule(self):
        self.policies = [policy(ingress=[{"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}])]
        self.admits(OUTSIDE, WEB, port=80)
        self.refuses(OUTSIDE, WEB, port=80, protocol="UDP")  # TCP where nothing is said
        self.refuses(OUTSIDE, WEB, port=81)
        self.admits(OUTSIDE, WEB, port=53, protocol="UDP")
        self.refuses(OUTSIDE, WEB, port=53)

    def test_a_protocol_without_a_port_is_all_its_ports(self):
        self.policies = [policy(ingress=[{"ports": [{"protocol": "UDP"}]}])]
        self.admits(OUTSIDE, WEB, port=7, protocol="UDP")
        self.refuses(OUTSIDE, WEB, port=7)

    def test_a_range_has_both_its_ends(self):
        self.policies = [policy(ingress=[{"ports": [{"port": 8000, "endPort": 8010}]}])]
        for port, inside in ((7999, False), (8000, True), (8005, True), (8010, True), (8011, False)):
            self.assertEqual(inside, self.passes(OUTSIDE, WEB, port=port), port)

    def test_a_named_port_is_that_of_the_pod_that_is_reached(self):
        self.policies = [policy(ingress=[{"ports": [{"port": "http"}]}])]
        self.admits(OUTSIDE, WEB, port=8080)
        self.refuses(OUTSIDE, WEB, port=81)
        self.admits(OUTSIDE, FAR, port=81)
        self.refuses(OUTSIDE, FAR, port=8080)
        self.refuses(OUTSIDE, CLIENT, port=8080)  # has none of that name
        self.policies = [policy(ingress=[{"ports": [{"port": "names"}]}])]
        self.refuses(OUTSIDE, WEB, port=53, protocol="UDP")  # the name is one of UDP
        self.policies = [policy(ingress=[{"ports": [{"port": "names", "protocol": "UDP"}]}])]
        self.admits(OUTSIDE, WEB, port=53, protocol="UDP")

    def test_a_named_port_of_egress_is_the_peers(self):
        self.policies = [policy(podSelector={"matchLabels": {"app": "client"}}, policyTypes=["Egress"],
                                egress=[{"to": [{"podSelector": {}}], "ports": [{"port": "http"}]}])]
        self.admits(CLIENT, WEB, port=8080)
        self.admits(CLIENT, FAR, port=81)
        self.refuses(CLIENT, WEB, port=81)
        self.refuses(CLIENT, OUTSIDE, port=8080)
        self.policies[0]["spec"]["egress"] = [{"ports": [{"port": "http"}]}]
        self.admits(CLIENT, WEB, port=8080)
        self.refuses(CLIENT, OTHER, port=8080)
        self.refuses(CLIENT, OUTSIDE, port=8080)

    def test_peers_and_ports_of_one_rule_must_both_hold_and_rules_are_either(self):
        self.policies = [policy(ingress=[
            {"from": [{"podSelector": {}}], "ports": [{"port": 80}]},
            {"from": [{"ipBlock": {"cidr": f"{OUTSIDE}/32"}}], "ports": [{"port": 81}]}])]
        self.admits(CLIENT, WEB, port=80)
        self.refuses(CLIENT, WEB, port=81)
        self.admits(OUTSIDE, WEB, port=81)
        self.refuses(OUTSIDE, WEB, port=80)

    def test_policies_add_up(self):
        self.policies = [policy(policyTypes=["Ingress"]),
                         policy(ingress=[{"from": [{"podSelector": {}}]}]),
                         policy(podSelector={"matchLabels": {"app": "web"}},
                                ingress=[{"ports": [{"port": 443}]}])]
        self.admits(CLIENT, WEB)
        self.refuses(OTHER, WEB)
        self.admits(OTHER, WEB, port=443)
        self.refuses(OTHER, CLIENT, port=443)

    def test_both_ends_must_admit(self):
        leave = policy(podSelector={"matchLabels": {"app": "client"}}, policyTypes=["Egress"],
                       egress=[{"to": [{"podSelector": {"matchLabels": {"app": "web"}}}]}])
        enter = policy(podSelector={"matchLabels": {"app": "web"}},
                       ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}])
        for source in (CLIENT, FAR):  # on one node, and over two
            self.policies = [leave, enter]
            self.admits(source, WEB)
            self.policies = [{**leave, "spec": {**leave["spec"], "egress": []}}, enter]
            self.refuses(source, WEB)
            self.policies = [leave, {**enter, "spec": {**enter["spec"], "ingress": []}}]
            self.refuses(source, WEB)

    def test_replies_of_connections_that_stand_pass(self):
        self.policies = [policy(policyTypes=["Ingress", "Egress"])]
        self.refuses(WEB, OTHER)
        self.admits(WEB, OTHER, state="ESTABLISHED")
        self.admits(OTHER, WEB, state="RELATED")

    def test_the_node_of_a_pod_always_reaches_it_and_other_nodes_do_not(self):
        self.policies = [policy(policyTypes=["Ingress", "Egress"])]
        self.admits("n1", WEB)
        self.admits(WEB, "n1")
        self.refuses("n2", WEB)
        self.refuses(WEB, "n2")
        self.admits("n2", FAR)

    def test_a_pod_always_reaches_itself(self):
        self.policies = [policy(policyTypes=["Ingress", "Egress"])]
        self.admits(WEB, WEB)

    def test_pods_without_a_network_of_their_own_are_nobodys_peers(self):
        host = pod("a", "host", NODES["n2"], "n2", app="client")
        host["spec"]["hostNetwork"] = True
        done = pod("a", "done", "10.244.1.9", app="client")
        done["status"]["phase"] = "Succeeded"
        starting = pod("a", "starting", "", app="client")
        self.assertEqual([None] * 3, list(map(pod_of, (host, done, starting))))
        self.pods += [host, done, starting]
        self.policies = [policy(ingress=[{"from": [{"podSelector": {}}]}])]
        self.refuses("n2", WEB)
        self.refuses("10.244.1.9", WEB)

    def test_pods_and_labels_that_come_later_are_seen(self):
        self.policies = [policy(ingress=[{"from": [{"podSelector": {"matchLabels": {
            "app": "late"}}}]}])]
        late = pod("a", "late", "10.244.2.9", "n2", app="late")
        self.refuses(late, WEB)
        self.pods.append(late)
        self.admits(late, WEB)
        late["metadata"]["labels"] = {}
        self.refuses(late, WEB)
        self.refuses(OTHER, late)  # and isolated themselves
        self.policies = [policy(ingress=[{"from": [{"namespaceSelector": {"matchLabels": {
            "team": "green"}}}]}])]
        self.refuses(OTHER, WEB)
        self.spaces["b"] = {"team": "green"}
        self.admits(OTHER, WEB)


class Text(unittest.TestCase):
    def test_chains_that_are_no_more_are_emptied_and_deleted(self):
        text = restore_text({network_policies.MAIN: ["-j RETURN"]}, [network_policies.MAIN, "TP-I-1"])
        self.assertIn(":TP-I-1 - [0:0]\n", text)
        self.assertIn("-X TP-I-1\nCOMMIT\n", text)
        self.assertNotIn(f"-X {network_policies.MAIN}", text)

    def test_names_of_chains_fit(self):
        world = World([pod_of(WEB)], SPACES, [policy(policyTypes=["Ingress", "Egress"])])
        chains = world.rules("n1")
        self.assertEqual(3, len(chains))
        for chain in chains:
            self.assertLessEqual(len(chain), 28)
        self.assertEqual([network_policies.MAIN], list(world.rules("n2")))

    def test_rules_for_addresses_of_the_other_internet_protocol_are_left_out(self):
        world = World([pod_of(WEB)], SPACES, [policy(ingress=[{"from": [
            {"ipBlock": {"cidr": "fd00::/8"}}]}])])
        self.assertNotIn("fd00", restore_text(world.rules("n1")))
