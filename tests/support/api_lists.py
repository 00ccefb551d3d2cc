# SPDX-License-Identifier: Apache-2.0
"""What an API server holds, by its own description of itself."""


def lists(get):
    """(path of the list, resource, whether it has namespaces) of whatever can be listed and deleted;
    `get` is a GET of a path that gives the answer decoded."""
    groups = ["/api/v1"] + [f"/apis/{group['preferredVersion']['groupVersion']}"
                            for group in get("/apis")["groups"]]
    for group in groups:
        for resource in get(group).get("resources", ()):
            if {"list", "delete"} <= set(resource["verbs"]) and "/" not in resource["name"]:
                yield f"{group}/{resource['name']}", resource["name"], resource["namespaced"]
