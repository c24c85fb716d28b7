"""Resolves what the files say: references, like, embedded types, inherited descriptions, zero values."""

import copy
import json
import re

from language import Alias, ApiError, Field, Type

BUILTIN = {
    "string": "STRING", "bool": "BOOL", "int32": "INT32", "int64": "INT64", "uint32": "UINT32", "uint64": "UINT64",
    "double": "DOUBLE", "float": "FLOAT", "bytes": "BYTES", "rawbytes": "RAW_BYTES", "time": "TIME",
    "microtime": "MICROTIME", "duration": "DURATION", "quantity": "QUANTITY", "intOrString": "INT_OR_STRING", "json": "JSON",
    "fields": "FIELDS", "strings": "STRINGS",
}
# Go structs: omitempty never leaves them out.
STRUCTS = {"TIME", "MICROTIME", "DURATION", "QUANTITY", "INT_OR_STRING", "JSON", "FIELDS", "MESSAGE"}
INTEGERS = {"BOOL", "INT32", "INT64", "UINT32", "UINT64", "ENUM"}
ZERO_JSON = {
    "STRING": '""', "BOOL": "false", "DURATION": '"0s"', "QUANTITY": '"0"', "INT_OR_STRING": "0", "INT32": "0", "INT64": "0",
    "UINT32": "0", "UINT64": "0", "DOUBLE": "0", "FLOAT": "0", "ENUM": "0",
}
ZERO_MESSAGE = {  # the bytes of those messages that are not empty when zero
    "DURATION": b"\x08\x00", "QUANTITY": b"\x0a\x010", "INT_OR_STRING": b"\x08\x00\x10\x00\x1a\x00",
}


GO_NAME = {"QUANTITY": "resource.Quantity"}


def stability(package_name):
    """Sorts versions as Kubernetes does: stable before beta before alpha, new before old."""
    m = re.search(r"(?:^|/)v(\d+)(?:(alpha|beta)(\d+))?$", package_name)
    if not m:
        return (0, 0, 0)
    return ({None: 3, "beta": 2, "alpha": 1}[m[2]], int(m[1]), int(m[3] or 0))


class Resolver:
    def __init__(self, schema):
        self.schema = schema
        self.expanded = {}        # what has been like something: "begun" or "done"

    def run(self):
        self.add_likes()
        for package in self.schema.packages.values():
            for t in [*package.types.values(), *package.aliases.values()]:
                self.expand_like(t)
        self.types = [t for p in self.schema.packages.values() for t in p.types.values()]
        for t in self.types:
            for f in t.members:
                self.resolve_field(t, f)
        for t in self.types:
            self.flatten(t)
        self.mark_defaults()
        self.inherit_descriptions()
        for t in self.types:
            self.zero_json(t)
            self.zero_wire(t)
        self.resolve_resources()
        self.resolve_rpcs()

    def find(self, package, name, where):
        """A type, enum or alias by its name as written in that package."""
        found = self.lookup(package, name)
        if found is None:
            other, _, last = name.rpartition(".")
            found = self.lookup(self.schema.packages[other], last) if other in self.schema.packages else None
        if found is None:
            raise ApiError(where, f'there is no type "{name}"')
        return found

    @staticmethod
    def lookup(package, name):
        for table in (package.types, package.aliases, package.enums):
            if name in table:
                return table[name]
        return None

    def find_type(self, package, name, where):
        found = self.find(package, name, where)
        if not isinstance(found, Type):
            raise ApiError(where, f'"{name}" is not a kind or type')
        return found

    def add_likes(self):
        """Makes the types that "like PACKAGE NAME..." names; their source may itself be such a type."""
        pending = {}
        for like in self.schema.likes:
            for name in like.names:
                if self.lookup(like.package, name) or (like.package, name) in pending:
                    raise ApiError(like.where, f'"{name}" is already defined in package {like.package.name}')
                pending[like.package, name] = like

        def make(package, name):
            like = pending.pop((package, name), None)
            if not like:
                return
            source = self.schema.packages.get(like.source)
            if source:
                make(source, name)
            found = source and self.lookup(source, name)
            if not isinstance(found, (Type, Alias)):
                raise ApiError(like.where, f'there is no type "{name}" in package "{like.source}"')
            t = type(found)(package, name, like.where)
            t.like = like.source
            if isinstance(t, Type):
                t.kind = found.kind
            (package.types if isinstance(t, Type) else package.aliases)[name] = t

        for package, name in list(pending):
            make(package, name)

    def expand_like(self, t):
        if not t.like or self.expanded.get(t) == "done":
            return
        if t in self.expanded:
            raise ApiError(t.where, "like goes in a circle")
        self.expanded[t] = "begun"
        source_package = self.schema.packages.get(t.like)
        source = source_package and self.lookup(source_package, t.name)
        if type(source) is not type(t) or source is t:
            raise ApiError(t.where, f'there is no such "{t.name}" in package "{t.like}"')
        self.expand_like(source)
        self.expanded[t] = "done"
        if isinstance(t, Alias):
            t.shape, t.base, t.words = source.shape, self.rebase(source.base, source, t), source.words
            return
        t.form, t.atomic = source.form, source.atomic
        t.description = t.description or source.description
        for f in source.members:
            f = copy.copy(f)
            f.base = self.rebase(f.base, source, t)
            if "keys" in f.words:
                f.words = {**f.words, "keys": self.rebase(f.words["keys"], source, t)}
            t.members.append(f)

    def rebase(self, base, source, t):
        """A reference of source as t has it: to the same name in t's package when that exists."""
        if base in BUILTIN or "." in base or self.lookup(t.package, base):
            return base
        return f"{source.package.name}.{base}"

    def resolve_field(self, t, f):
        f.type = f.enum = None
        f.go_type = ""
        package, base = t.package, f.base
        found = None if base in BUILTIN else self.find(package, base, f.where)
        if isinstance(found, Alias):
            package, base = found.package, found.base
            name = go_name(found)
            f.go_type = {"one": name, "list": "[]" + name, "map": "map[string]" + name}[f.shape]
            if found.shape != "one":
                if f.shape != "one":
                    raise ApiError(f.where, f"{found.name} is a {found.shape} already")
                f.shape = found.shape
            f.words = {**found.words, **f.words}
            found = None if base in BUILTIN else self.find(package, base, found.where)
        f.kind = BUILTIN.get(base)
        if isinstance(found, list):
            f.kind, f.enum = "ENUM", found
        elif isinstance(found, Type):
            f.kind, f.type = "MESSAGE", found
        elif not f.kind:
            raise ApiError(f.where, f"{f.base} is an alias of an alias")
        if "keys" in f.words:
            if f.shape != "map":
                raise ApiError(f.where, "only a map has keys")
            keys = self.find(t.package, f.words["keys"], f.where)
            value = f.go_type.removeprefix("map[string]") or (go_name(f.type) if f.type else GO_NAME.get(f.kind, f.base))
            f.go_type = f"map[{go_name(keys)}]{value}"
        if f.embed and f.kind != "MESSAGE":
            raise ApiError(f.where, "only a type can be embedded")
        if f.embed and (f.words or f.pointer or f.shape != "one"):
            raise ApiError(f.where, "an embedded type has no words of its own")
        if t.package.proto and f.number is None:
            raise ApiError(f.where, "fields of a wire message need a number")
        # proto3: absent and empty messages differ, and so do members of a oneof and zero ones.
        f.pointer |= bool(t.package.proto) and f.shape == "one" and (f.kind == "MESSAGE" or "oneof" in f.words)

    def flatten(self, t):
        """t.fields: in JSON order, embedded ones in place. t.wire: (number, field or embedded type), by number."""
        if hasattr(t, "fields"):
            return
        t.fields, t.wire = [], []
        if t.kind:
            for name in ("kind", "apiVersion"):
                f = Field(name, None, t.where)
                f.base, f.kind, f.type, f.enum, f.go_type = "string", "STRING", None, None, ""
                t.fields.append(f)
        for f in t.members:
            if f.number:
                t.wire.append((f.number, f.type if f.embed else None, f))
            if not f.embed:
                f.embedded = False
                t.fields.append(f)
                continue
            self.flatten(f.type)
            for inner in f.type.fields:
                inner = copy.copy(inner)
                inner.embedded = True
                t.fields.append(inner)
        t.wire.sort(key=lambda w: w[0])
        seen = set()
        for f in t.fields:
            if f.name in seen:
                raise ApiError(t.where, f'"{f.name}" comes twice in {t.name}, once from an embedded type')
            seen.add(f.name)
            self.flags(t, f)

    def flags(self, t, f):
        w = f.words
        proto3 = bool(t.package.proto)
        one = f.shape == "one" and not f.pointer
        struct = one and f.kind in STRUCTS
        written = "always" in w or ("required" in w and "omitempty" not in w and "omitzero" not in w)
        f.always = not proto3 and (written or (struct and "omitzero" not in w))
        f.flags = [name for name, on in (
            ("REQUIRED", "required" in w), ("ALWAYS", f.always), ("POINTER", f.pointer), ("NO_WIRE", f.number is None),
            ("ONEOF", "oneof" in w), ("MERGE", "merge" in w), ("RETAIN_KEYS", "retainKeys" in w), ("REPLACE", "replace" in w),
            ("SET", "set" in w), ("MAP_LIST", "map" in w), ("ATOMIC", "atomic" in w), ("GRANULAR", "granular" in w),
            ("EMBEDDED", getattr(f, "embedded", False))) if on]
        f.default_json = self.default_json(f, one, written)
        if f.default_json and f.kind != "MESSAGE" and (f.pointer or json.loads(f.default_json)):
            f.flags.append("DEFAULT")

    def default_json(self, f, one, written):
        """The default that OpenAPI shows: as given, else the zero value of what is always there."""
        if "default" in f.words:
            value = f.words["default"]
            return '"%s"' % value if f.kind == "STRING" else value
        if one and f.kind == "MESSAGE":
            return "{}"
        if one and written and f.kind in ("STRING", "BOOL", "INT32", "INT64", "UINT32", "UINT64", "DOUBLE", "FLOAT"):
            return ZERO_JSON[f.kind]
        return ""

    def mark_defaults(self):
        """t.defaults: whether a field of it, or of what is in it, has a default. Types may contain themselves."""
        users = {}
        for t in self.types:
            t.defaults = False
            for f in t.fields:
                if f.type:
                    users.setdefault(f.type, []).append(t)
        todo = [t for t in self.types if any("DEFAULT" in f.flags for f in t.fields)]
        while todo:
            t = todo.pop()
            if not t.defaults:
                t.defaults = True
                todo += users.get(t, [])

    def inherit_descriptions(self):
        groups = {}
        for p in self.schema.packages.values():
            groups.setdefault(p.name.rpartition("/")[0] or p.name, []).append(p)
        for packages in groups.values():
            packages.sort(key=lambda p: stability(p.name), reverse=True)
            for p in packages:
                for t in p.types.values():
                    for stable in packages:
                        if stable is not p and t.name in stable.types:
                            self.inherit(t, stable.types[t.name])
        for t in self.types:      # the copies of embedded fields
            for f in t.fields:
                if getattr(f, "embedded", False) and not f.description:
                    f.description = self.described(t, f.name)
        for t in self.types:
            if t.list_of and not t.description:
                t.description = f"A list of {t.list_of} objects."

    @staticmethod
    def inherit(t, stable):
        t.description = t.description or stable.description
        texts = {f.name: f.description for f in stable.members}
        for f in t.members:
            f.description = f.description or texts.get(f.name, "")

    def described(self, t, name):
        for f in t.members:
            if f.embed:
                for inner in f.type.members:
                    if inner.name == name:
                        return inner.description
                text = self.described(f.type, name)
                if text:
                    return text
        return ""

    def zero_json(self, t):
        if hasattr(t, "zero_json"):
            return t.zero_json
        parts = []
        for f in t.fields:
            if not f.always:
                continue
            value = "null"
            if f.shape == "one" and not f.pointer:
                value = self.zero_json(f.type) if f.kind == "MESSAGE" else ZERO_JSON.get(f.kind, "null")
            parts.append(f'"{f.name}":{value}')
        t.zero_json = "{" + ",".join(parts) + "}"
        if t.form != "object":
            t.zero_json = "false" if t.form == "schemaOrBool" else "null"
        return t.zero_json

    def zero_wire(self, t):
        """Kubernetes' encoder writes every plain scalar, string and message, zero or not."""
        if hasattr(t, "zero_wire"):
            return t.zero_wire
        out = b""
        for number, embedded, f in [] if t.package.proto else t.wire:
            if embedded or (f.kind == "MESSAGE" and f.shape == "one" and not f.pointer):
                inner = self.zero_wire(embedded or f.type)
                out += varint(number << 3 | 2) + varint(len(inner)) + inner
            elif f.pointer or f.shape != "one" or f.kind in ("BYTES", "RAW_BYTES", "STRINGS"):
                continue
            elif f.kind in INTEGERS:
                out += varint(number << 3) + b"\x00"
            elif f.kind == "DOUBLE":
                out += varint(number << 3 | 1) + bytes(8)
            elif f.kind == "FLOAT":
                out += varint(number << 3 | 5) + bytes(4)
            else:
                inner = ZERO_MESSAGE.get(f.kind, b"")
                out += varint(number << 3 | 2) + varint(len(inner)) + inner
        t.zero_wire = out
        return out

    def resolve_resources(self):
        out = []
        for r in self.schema.resources:
            for x in [r] + r.subresources:
                x.type = self.find_type(x.package, x.kind, x.where)
                x.group, x.version = split_api_version(x.package.api_version)
                x.parent = None if x is r else r
                out.append(x)
                if not x.package.priority:
                    raise ApiError(x.where, f"package {x.package.name} has resources and needs a priority")
        self.resources = sorted(out, key=lambda r: (discovery_order(r.package), r.name))
        self.api_versions = sorted({r.package for r in out}, key=discovery_order)

    def resolve_rpcs(self):
        count = {}
        for r in self.schema.rpcs:
            r.request_type = self.find_type(r.package, r.request, r.where)
            r.response_type = self.find_type(r.package, r.response, r.where)
            key = (r.service, r.method)
            count[key] = count.get(key, 0) + 1
        for r in self.schema.rpcs:
            ambiguous = count[(r.service, r.method)] > 1
            r.c_name = "rpc_" + (identifier(r.package.name) + "_" if ambiguous else "") + f"{r.service}_{r.method}"


def go_name(t):
    """What Go's error texts call a type: v1.PodPhase."""
    return t.package.name.rpartition("/")[2] + "." + t.name


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def identifier(text):
    return re.sub(r"\W", "_", text)


def discovery_order(package):
    group, version = package.priority
    return (-group, package.api_version.rpartition("/")[0], -version)


def split_api_version(text):
    group, _, version = (text or "").rpartition("/")
    return group, version


def resolve(schema):
    r = Resolver(schema)
    r.run()
    return r
