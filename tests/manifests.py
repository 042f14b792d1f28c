#!/usr/bin/python3
"""manifests.py FILE... - holds Kubernetes manifests against the API, and prints each thing that is wrong.

The API is that of Debian's python3-kubernetes: its classes are generated of Kubernetes' own OpenAPI
schema, and have the fields of each object with their types, and the required ones. Fields that name
each other are checked, too: volumes, selectors, claims. With --get the program prints one value instead:
manifests.py --get KIND FIELD... FILE
"""

import re
import sys

import yaml
from kubernetes import client

SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float), "date": str, "datetime": str}
PROPAGATIONS = {None, "None", "HostToContainer", "Bidirectional"}


class Wrong(Exception):
    """Says where, and what is wrong there."""


def check_fields(name, value, at):
    """An object: all of its fields are known, and the required ones are there."""
    cls = getattr(client, name)
    if not isinstance(value, dict):
        raise Wrong(f"{at}: must be an object, {name}")
    fields = {json: python for python, json in cls.attribute_map.items()}
    given = {}
    for json, part in value.items():
        if json not in fields:
            raise Wrong(f"{at}: {name} has no field {json}")
        given[fields[json]] = check(cls.openapi_types[fields[json]], part, f"{at}.{json}")
    try:
        cls(**given)
    except ValueError as error:
        raise Wrong(f"{at}: {error}") from None
    return given


def check(name, value, at):
    """A value of the type that the API gives it."""
    if found := re.fullmatch(r"list\[(.*)\]", name):
        if not isinstance(value, list):
            raise Wrong(f"{at}: must be a list")
        return [check(found[1], part, f"{at}[{i}]") for i, part in enumerate(value)]
    if found := re.fullmatch(r"dict\(str, (.*)\)", name):
        if not isinstance(value, dict):
            raise Wrong(f"{at}: must be a map")
        return {key: check(found[1], part, f"{at}.{key}") for key, part in value.items()}
    if name == "object":
        return value
    if name not in SCALARS:
        return check_fields(name, value, at)
    if not isinstance(value, SCALARS[name]) or (name != "bool" and isinstance(value, bool)):
        raise Wrong(f"{at}: must be {name}, and is {value!r}")
    return value


def pod_of(document):
    """The specification of the pods that an object makes; None: it makes none."""
    spec = document.get("spec", {})
    return spec if document["kind"] == "Pod" else spec.get("template", {}).get("spec")


def check_pod(pod, at):
    """Volumes are there, and Kubernetes accepts their propagation."""
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    used = set()
    for container in pod["containers"] + pod.get("initContainers", []):
        privileged = container.get("securityContext", {}).get("privileged", False)
        for mount in container.get("volumeMounts", []):
            propagation = mount.get("mountPropagation")
            used.add(mount["name"])
            if propagation not in PROPAGATIONS:
                raise Wrong(f"{at}: {mount['name']}: no propagation is {propagation}")
            if propagation == "Bidirectional" and not privileged:
                raise Wrong(f"{at}: {mount['name']}: Bidirectional is for privileged containers alone")
    if volumes != used:
        raise Wrong(f"{at}: volumes {sorted(volumes)}, used are {sorted(used)}")


def check_document(document, at):
    """One object of a file, by itself."""
    version = document["apiVersion"].split("/")[-1]
    check_fields(version.capitalize() + document["kind"], document, at)
    spec = document.get("spec", {})
    if "template" in spec and spec["selector"]["matchLabels"] != spec["template"]["metadata"]["labels"]:
        raise Wrong(f"{at}: the selector does not select the pods")
    if pod_of(document):
        check_pod(pod_of(document), at)


def check_names(documents):
    """Objects that others name are in the same files, except the Secret, which no file may have."""
    there = {(document["kind"], document["metadata"]["name"]) for document in documents}
    wanted = set()
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "PersistentVolumeClaim":
            wanted.add(("PersistentVolume", spec["volumeName"]))
        if document["kind"] == "PersistentVolume":
            wanted.add(("PersistentVolumeClaim", spec["claimRef"]["name"]))
        if document["kind"] == "StatefulSet":
            wanted.add(("Service", spec["serviceName"]))
        for volume in (pod_of(document) or {}).get("volumes", []):
            if "persistentVolumeClaim" in volume:
                wanted.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
            if "configMap" in volume:
                wanted.add(("ConfigMap", volume["configMap"]["name"]))
    if wanted - there:
        raise Wrong(f"not in these files: {sorted(wanted - there)}")
    if any(kind == "Secret" for kind, name in there):
        raise Wrong("a Secret is in a file")


def documents_of(files):
    """The objects of all files, each with its place."""
    for path in files:
        with open(path, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                yield f"{path}: {document['kind']}", document


def print_value(kind, *fields_and_file):
    """--get: a number is an index of a list."""
    *fields, path = fields_and_file
    for _, value in documents_of([path]):
        if value["kind"] == kind:
            for field in fields:
                value = value[int(field) if isinstance(value, list) else field]
            print("\n".join(value) if isinstance(value, list) else value)


def main(arguments):
    """All files; the exit status is 1 if anything is wrong."""
    if arguments[0] == "--get":
        print_value(*arguments[1:])
        return 0
    status = 0
    documents = list(documents_of(arguments))
    for at, document in documents:
        try:
            check_document(document, at)
        except Wrong as wrong:
            print(wrong)
            status = 1
    try:
        check_names([document for _, document in documents])
    except Wrong as wrong:
        print(wrong)
        status = 1
    return status


sys.exit(main(sys.argv[1:]))
