#!/usr/bin/env python3
"""What every cluster has, and what Services get: addresses, families, node ports; one server, and two on one etcd."""
import os
import threading

import tap
from cluster import Etcd, Folder, Server, wait_until

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def message(answer):
    return answer.json.get("message", "")


def names(answer):
    return [i["metadata"]["name"] for i in answer.json["items"]]


def endpoints(server):
    answer = server.request("GET", "/api/v1/namespaces/default/endpoints/kubernetes")
    return [a["ip"] for s in answer.json.get("subsets", []) for a in s["addresses"]] if answer.status == 200 else []


def has_taken(server, address):
    return server.request("GET", f"{ADDRESSES}/{address}").status == 200


def test_every_cluster(t):
    with Folder() as folder, Server(folder, "--service-cluster-ip-range", "10.97.0.0/24", "--advertise-address", "192.0.2.11") as s:
        t.check("namespaces", names(s.request("GET", "/api/v1/namespaces")) ==
                ["default", "kube-node-lease", "kube-public", "kube-system"])
        kubernetes = s.request("GET", SERVICES + "/kubernetes").json
        t.check("the first address is the API's", kubernetes["spec"]["clusterIPs"] == ["10.97.0.1"], kubernetes)
        t.check("its port leads to the server", kubernetes["spec"]["ports"][0]["targetPort"] == s.port, kubernetes)
        t.check("its endpoints", endpoints(s) == ["192.0.2.11"], endpoints(s))
        piece = s.request("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").json
        t.check("its slice", piece["endpoints"][0]["addresses"] == ["192.0.2.11"] and piece["ports"][0]["port"] == s.port, piece)
        t.check("priority classes", names(s.request("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")) ==
                ["system-cluster-critical", "system-node-critical"])
        t.check("priority levels", len(names(s.request("GET", FLOW + "/prioritylevelconfigurations"))) == 8)
        t.check("flow schemas", len(names(s.request("GET", FLOW + "/flowschemas"))) == 11)
        lease = s.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").json["items"][0]
        t.check("who is there", lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"] == "kube-apiserver", lease)

        def dangling():
            return s.request("GET", FLOW + "/flowschemas/system-nodes").json["status"]["conditions"][0]["status"]
        t.check("the level of a schema is there", dangling() == "False")
        s.request("DELETE", FLOW + "/prioritylevelconfigurations/system")
        t.check("the level of a schema is gone", dangling() == "True")
        s.request("DELETE", SERVICES + "/kubernetes")
        t.check("a removed Service leaves its address", not has_taken(s, "10.97.0.1"))
        s.request("PATCH", FLOW + "/flowschemas/catch-all", {"spec": {"matchingPrecedence": 9999}})
        wait_until(lambda: s.request("GET", SERVICES + "/kubernetes").status == 200 and dangling() == "False", 60,
                   "what was removed to be back")
        t.check("what was removed is back", has_taken(s, "10.97.0.1") and endpoints(s) == ["192.0.2.11"])
        again = s.request("GET", FLOW + "/flowschemas/catch-all").json["spec"]["matchingPrecedence"]
        t.check("what is mandatory is put back", again == 10000, again)


def test_addresses(t):
    with Folder() as folder, Server(folder, "--service-cluster-ip-range", "10.97.0.0/26") as s:
        a = s.request("POST", SERVICES, service("named", clusterIP="10.97.0.5"))
        t.check("by name", a.status == 201 and has_taken(s, "10.97.0.5"), a)
        a = s.request("POST", SERVICES, service("twice", clusterIP="10.97.0.5"))
        t.check("taken", a.status == 422 and "failed to allocate IP 10.97.0.5: provided IP is already allocated" in message(a), a)
        for address in ("10.97.0.0", "10.97.0.63", "10.97.0.64"):
            a = s.request("POST", SERVICES, service("outside", clusterIP=address))
            t.check("not to be had: " + address, "the provided network does not match the current range" in message(a), a)
        a = s.request("POST", SERVICES + "?dryRun=All", service("dry"))
        t.check("a dry run takes nothing", a.json["spec"]["clusterIP"] == "10.97.0.0" and len(names(s.request("GET", ADDRESSES))) == 2, a)
        a = s.request("POST", SERVICES, service("Bad_Name", clusterIP="10.97.0.6"))
        t.check("refused, it leaves nothing", a.status == 422 and not has_taken(s, "10.97.0.6"), a)
        got = []
        while (a := s.request("POST", SERVICES, service(f"many-{len(got)}"))).status == 201:
            got.append(int(a.json["spec"]["clusterIP"].split(".")[3]))
        t.check("all of them, the upper ones first", len(set(got)) == 60 and min(got[:46]) > 16 and max(got[46:]) <= 16, got)
        t.check("none is left", a.status == 500 and "range is full" in message(a), a)
        s.request("PATCH", SERVICES + "/named", {"spec": {"type": "ExternalName", "externalName": "a.example"}})
        t.check("another type leaves it", not has_taken(s, "10.97.0.5"))
        a = s.request("PATCH", SERVICES + "/named", {"spec": {"type": "ClusterIP", "externalName": None}})
        t.check("and takes one again", a.json["spec"]["clusterIPs"] == ["10.97.0.5"], a)
        s.request("DELETE", SERVICES)
        wait_until(lambda: names(s.request("GET", ADDRESSES)) in ([], ["10.97.0.1"]), 30, "addresses to be free")
        body = service("last", clusterIP="10.97.0.9")
        body["metadata"]["finalizers"] = ["example.com/wait"]
        s.request("POST", SERVICES, body)
        s.request("DELETE", SERVICES + "/last")
        t.check("one that is waited for keeps its address", has_taken(s, "10.97.0.9"))
        s.request("PATCH", SERVICES + "/last/status", {"metadata": {"finalizers": None}})
        t.check("until it is gone", not has_taken(s, "10.97.0.9"))


def test_families(t):
    with Folder() as folder, Server(folder, "--service-cluster-ip-range", "10.97.0.0/24,fd00:97::/112") as s:
        rows = [
            ({}, ["IPv4"], "SingleStack"),
            ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4", "IPv6"], "PreferDualStack"),
            ({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]}, ["IPv6", "IPv4"], "RequireDualStack"),
            ({"ipFamilies": ["IPv6"]}, ["IPv6"], "SingleStack"),
            ({"clusterIP": "fd00:97::5"}, ["IPv6"], "SingleStack"),
        ]
        for i, (spec, families, policy) in enumerate(rows):
            got = s.request("POST", SERVICES, service(f"row-{i}", **spec)).json["spec"]
            t.check(f"families of {spec}", (got["ipFamilies"], got["ipFamilyPolicy"]) == (families, policy) and
                    [":" in ip for ip in got["clusterIPs"]] == [f == "IPv6" for f in families], got)
        up = s.request("PATCH", SERVICES + "/row-0", {"spec": {"ipFamilyPolicy": "PreferDualStack"}}).json["spec"]
        t.check("a second family", len(up["clusterIPs"]) == 2 and has_taken(s, up["clusterIPs"][1]), up)
        down = s.request("PATCH", SERVICES + "/row-0", {"spec": {"ipFamilyPolicy": "SingleStack"}}).json["spec"]
        t.check("one family again", down["clusterIPs"] == up["clusterIPs"][:1] and not has_taken(s, up["clusterIPs"][1]), down)
        a = s.request("PATCH", SERVICES + "/row-1", {"spec": {"ipFamilies": ["IPv4"]}})
        t.check("not without saying so", "must be 'SingleStack' to release the secondary IP family" in message(a), a)
        a = s.request("POST", SERVICES, service("half", clusterIP="10.97.0.8", clusterIPs=["10.97.0.8", "fd00:97::5"],
                                                ipFamilyPolicy="PreferDualStack"))
        t.check("both or none", a.status == 422 and not has_taken(s, "10.97.0.8"), a)


def node_ports(answer):
    return [p.get("nodePort") for p in answer.json["spec"]["ports"]]


def test_node_ports(t):
    with Folder() as folder:
        server = Server(folder, "--service-node-port-range", "30000-30099")
        with server as s:
            a = s.request("POST", SERVICES, service("np", type="NodePort", ports=[{"port": 80, "nodePort": 30007}]))
            t.check("by number", node_ports(a) == [30007], a)
            a = s.request("POST", SERVICES, service("np2", type="NodePort", ports=[{"port": 80, "nodePort": 30007}]))
            t.check("taken", "spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated" in message(a), a)
            a = s.request("POST", SERVICES, service("np3", type="NodePort", ports=[{"port": 80, "nodePort": 30100}]))
            t.check("outside", "The range of valid ports is 30000-30099" in message(a), a)
            a = s.request("POST", SERVICES, service("dns", type="NodePort", ports=[
                {"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]))
            t.check("two protocols share one", len(set(node_ports(a))) == 1 and node_ports(a)[0] >= 30016, a)
            a = s.request("POST", SERVICES, service("local", type="LoadBalancer", externalTrafficPolicy="Local"))
            check = a.json["spec"]["healthCheckNodePort"]
            t.check("a port for health checks", check >= 30016 and check not in node_ports(a), a)
            a = s.request("POST", SERVICES, service("none", type="LoadBalancer", allocateLoadBalancerNodePorts=False))
            t.check("a load balancer without", node_ports(a) == [None], a)
            a = s.request("PATCH", SERVICES + "/np", {"spec": {"type": "ClusterIP"}})
            t.check("another type drops them", node_ports(a) == [None], a)
            a = s.request("POST", SERVICES, service("np2", type="NodePort", ports=[{"port": 80, "nodePort": 30007}]))
            t.check("so that others can have them", node_ports(a) == [30007], a)
            s.request("DELETE", SERVICES + "/local")
            a = s.request("POST", SERVICES, service("np4", type="NodePort", ports=[{"port": 80, "nodePort": check}]))
            t.check("a removed one leaves them", a.status == 201, a)
        with server as s:
            a = s.request("POST", SERVICES, service("np5", type="NodePort", ports=[{"port": 80, "nodePort": check}]))
            t.check("a restart keeps them", a.status == 422, a)


def test_two_servers(t):
    """Together they fill a small range at the same time: everything is given out once."""
    with Folder() as folder, Etcd(os.path.join(folder, "etcd")) as etcd:
        flags = ["--etcd-servers", etcd.endpoints, "--service-cluster-ip-range", "10.97.0.0/26", "--service-node-port-range",
                 "30000-30079"]
        servers = [Server(os.path.join(folder, str(i)), *flags, "--advertise-address", f"192.0.2.{11 + i}") for i in range(2)]
        with servers[0], servers[1]:
            answers = []

            def fill(k):
                connection = servers[k % 2].connect()
                for i in range(20):
                    answers.append(servers[k % 2].request("POST", SERVICES, service(f"s-{k}-{i}", type="NodePort"), connection=connection))
            threads = [threading.Thread(target=fill, args=(k,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            made = [a.json["spec"] for a in answers if a.status == 201]
            failed = {message(a).partition(": ")[2].replace(message(a).split('"')[1], "NAME") for a in answers if a.status != 201}
            t.check("as many as there are", len(made) == 61, f"{len(made)} {failed}")
            t.check("no address twice", len({m["clusterIP"] for m in made}) == len(made))
            t.check("no port twice", len({m["ports"][0]["nodePort"] for m in made}) == len(made))
            t.check("the rest is told why", failed == {'failed to allocate a serviceIP for Service "NAME": range is full'}, failed)
            wait_until(lambda: endpoints(servers[0]) == ["192.0.2.11", "192.0.2.12"], 30, "both servers to be endpoints")
            t.check("both are endpoints", True)
            servers[0].kill()
            wait_until(lambda: endpoints(servers[1]) == ["192.0.2.12"], 60, "the dead server to be gone from the endpoints")
            t.check("a dead one is none", True)
            lost = made[0]["clusterIP"]
            etcd.ctl("del", "/registry/ipaddresses/" + lost)
            etcd.ctl("del", "/registry/ranges/servicenodeports")
            servers[0].start()
            t.check("what was lost is taken again at the start", has_taken(servers[0], lost))
            port = made[0]["ports"][0]["nodePort"]
            a = servers[0].request("PUT", SERVICES + "/kubernetes", servers[0].request("GET", SERVICES + "/kubernetes").json)
            t.check("a write that changes nothing", a.status == 200, a)
            spec = {"type": "NodePort", "ports": [{"name": "https", "port": 443, "targetPort": 443, "nodePort": port}]}
            a = servers[1].request("PATCH", SERVICES + "/kubernetes", {"spec": spec})
            t.check("and so are ports", "provided port is already allocated" in message(a), a)


if __name__ == "__main__":
    tap.run([test_every_cluster, test_addresses, test_families, test_node_ports, test_two_servers])
