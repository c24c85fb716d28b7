"""Writes the C tables: codec/atoms.h, codec/types.h, the atom table, the index, and one file per .api file."""

import os

from model import identifier, split_api_version

HEADER = "/* Generated from api/ by tools/apigen. */\n"
MASK64 = (1 << 64) - 1
VERBS = {
    "create": "CREATE", "delete": "DELETE", "deletecollection": "DELETE_COLLECTION", "get": "GET", "list": "LIST",
    "patch": "PATCH", "update": "UPDATE", "watch": "WATCH",
}
SIMPLE_FORMS = {
    "object": "FORM_OBJECT", "schemaOrBool": "FORM_SCHEMA_OR_BOOL", "schemaOrArray": "FORM_SCHEMA_OR_ARRAY",
    "schemaOrStrings": "FORM_SCHEMA_OR_STRINGS",
}


def name_hash(text):
    """The same function as name_hash() in codec/schema_tables.h."""
    s = text.encode()
    n = len(s)
    if n >= 8:
        a, b = int.from_bytes(s[:8], "little"), int.from_bytes(s[-8:], "little")
    elif n >= 4:
        a, b = int.from_bytes(s[:4], "little"), int.from_bytes(s[-4:], "little")
    elif n:
        a, b = s[0] | s[n // 2] << 8 | s[n - 1] << 16, 0
    else:
        a = b = 0
    h = ((a + n) * 0x9E3779B97F4A7C15 & MASK64) ^ b
    h ^= h >> 32
    return (h * 0xD6E8FEB86659FD93 & MASK64) >> 32


def hash_table(hashes):
    """Slots of an open-addressing table with linear probing, at most half full: index + 1 or 0."""
    size = 4
    while size < 2 * len(hashes):
        size *= 2
    slots = [0] * size
    for i, h in enumerate(hashes):
        while slots[h & size - 1]:
            h += 1
        slots[h & size - 1] = i + 1
    return slots


def c_string(data):
    if isinstance(data, str):
        data = data.encode()
    out = ""
    for b in data:
        c = chr(b)
        out += "\\" + c if c in '"\\' else c if 32 <= b < 127 and c != "?" else f"\\{b:03o}"
    return f'"{out}"'


def c_str(data):
    """A struct str initializer. Nothing is NULL, not "": each pointer costs a relocation when the program starts."""
    n = len(data.encode() if isinstance(data, str) else data)
    return f"{{ {c_string(data)}, {n} }}" if n else "{ NULL, 0 }"


def number_rows(numbers, per_line=24):
    return "".join("\t" + ", ".join(map(str, numbers[i:i + per_line])) + ",\n" for i in range(0, len(numbers), per_line))


class Emitter:
    def __init__(self, model, out_dir):
        self.model = model
        self.out_dir = out_dir
        self.types = sorted(model.types, key=lambda t: (t.package.name, t.name))
        names = set(model.schema.names) | {"kind", "apiVersion"}
        for t in self.types:
            names.update(f.name for f in t.fields)
        self.names = sorted(names)
        self.number = {name: i + 1 for i, name in enumerate(self.names)}
        self.slots = {}           # atoms of a type -> perfect hash
        owner = {}
        for name in self.names:
            other = owner.setdefault(identifier(name), name)
            if other != name:
                raise SystemExit(f'"{name}" and "{other}" would be the same C name')

    def write(self, name, text):
        """Leaves an unchanged file alone, so that nothing is compiled again."""
        path = os.path.join(self.out_dir, name)
        try:
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        except FileNotFoundError:
            pass
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, c_name_of_source):
        self.write("atoms.h", self.atoms_h())
        self.write("types.h", self.types_h())
        self.write("atom_table.c", self.atom_table())
        self.write("schema_index.c", self.index())
        for source in self.model.schema.sources:
            types = [t for t in self.types if t.source == source]
            rpcs = [r for r in self.model.schema.rpcs if r.where[0] == source]
            self.write(c_name_of_source(source), SourceFile(self, types, rpcs).text())

    def atoms_h(self):
        out = [HEADER, "#ifndef C8S_CODEC_ATOMS_H\n#define C8S_CODEC_ATOMS_H\n\nenum {\n"]
        for name in self.names:
            out.append(f"\tA_{identifier(name)} = {self.number[name]},\n")
        out.append(f"\tA__Bool = A_bool, /* where stdbool.h has replaced the word */\n\tATOM_COUNT = {len(self.names)},\n}};\n\n#endif\n")
        return "".join(out)

    def types_h(self):
        out = [HEADER, '#ifndef C8S_CODEC_TYPES_H\n#define C8S_CODEC_TYPES_H\n\n#include "codec/schema.h"\n\n']
        for t in self.types:
            out.append(f"extern const struct type {c_type(t)};\n")
        out.append("\n")
        for r in self.model.schema.rpcs:
            out.append(f"extern const struct rpc {r.c_name};\n")
        out.append("\n#endif\n")
        return "".join(out)

    def atom_table(self):
        offsets, text, at = [0, 0], "", 0
        for name in self.names:
            quoted = f'"{name}":'
            text += f"\t{c_string(quoted)}\n"
            at += len(quoted.encode())
            offsets.append(at)
        slots = hash_table([name_hash(n) for n in self.names])
        return (HEADER + '#include "codec/schema_tables.h"\n\nconst char atom_text[] =\n' + text + ";\n\n"
                "const uint32_t atom_offset[] = {\n" + number_rows(offsets, 16) + "};\n\n"
                f"const uint16_t atom_slots[] = {{\n{number_rows(slots)}}};\nconst uint32_t atom_slot_mask = {len(slots) - 1};\n")

    def perfect_hash(self, t):
        """multiplier, slots: atom * multiplier >> 16 & mask gives each field its own slot."""
        atoms = tuple(self.number[f.name] for f in t.fields)
        if atoms not in self.slots:
            self.slots[atoms] = find_perfect_hash(atoms)
        return self.slots[atoms]

    def index(self):
        out = [HEADER, '#include "codec/schema_tables.h"\n#include "codec/types.h"\n\n']
        out.append("const struct type *const schema_types[] = {\n")
        out += [f"\t&{c_type(t)},\n" for t in self.types]
        out.append(f"}};\nconst size_t schema_n_types = {len(self.types)};\n\n")
        kinds, seen = [], {}
        for i, t in enumerate(self.types):
            if t.kind:
                key = (t.api_version, t.name)
                if key in seen:
                    raise SystemExit(f"{':'.join(map(str, t.where))}: {t.api_version} {t.name} exists already, from {seen[key]}")
                seen[key] = t.package.name
                kinds.append(i)
        slots = hash_table([(name_hash(self.types[i].name) + 31 * name_hash(self.types[i].api_version)) & 0xffffffff for i in kinds])
        slots = [kinds[s - 1] + 1 if s else 0 for s in slots]
        out.append(f"const uint16_t schema_kind_slots[] = {{\n{number_rows(slots)}}};\nconst uint32_t schema_kind_mask = {len(slots) - 1};\n\n")
        versions = [(split_api_version(p.api_version), p.priority) for p in self.model.api_versions]
        out.append("const struct api_version schema_api_versions[] = {\n" + "".join(
            f"\t{{ {c_str(group)}, {c_str(version)}, {priority[0]}, {priority[1]} }},\n" for (group, version), priority in versions) +
            f"}};\nconst size_t schema_n_api_versions = {len(versions)};\n\n")
        lists = StringLists()
        rows = [self.resource(r, lists) for r in self.model.resources]
        out += lists.out
        out.append("const struct resource schema_resources[] = {\n" + "".join(rows) +
                   f"}};\nconst size_t schema_n_resources = {len(rows)};\n")
        return "".join(out)

    def resource(self, r, lists):
        w = r.words
        verbs = w.get("verbs", ",".join(VERBS)).split(",")
        flags = ["RESOURCE_NAMESPACED"] if "namespaced" in w else []
        stored = "hash" in w
        if stored and "json" not in w:
            flags.append("RESOURCE_PROTOBUF")
        if "alpha" not in r.version and "beta" not in r.version:
            flags.append("RESOURCE_DEFAULT")
        group, version = split_api_version(r.type.api_version)
        singular = "" if r.parent else w.get("singular", r.type.name.lower())
        strings = [r.group, r.version, r.name, singular, r.type.name]
        parts = [c_str(s) for s in strings] + ["&" + c_type(r.type), " | ".join(flags) or "0",
                 " | ".join("VERB_" + VERBS[v] for v in verbs)]
        parts += [lists.add(w[key].split(",")) if key in w else lists.add([]) for key in ("short", "categories")]
        parts += [c_str(s) for s in (group, version, r.type.name, w.get("key", r.name) if stored else "",
                                     w.get("storage", r.package.api_version) if stored else "", w.get("hash", ""))]
        return "\t{ " + ", ".join(parts) + " },\n"


class StringLists:
    """Tables of strings that are ended by { NULL, 0 }, each written once."""

    def __init__(self):
        self.out = []
        self.known = {}

    def add(self, values):
        key = tuple(values)
        if key not in self.known:
            self.known[key] = f"strings_{len(self.known)}"
            rows = "".join((c_str(v) if v else '{ "", 0 }') + ", " for v in values)
            self.out.append(f"static const str {self.known[key]}[] = {{ {rows}{{ NULL, 0 }} }};\n")
        return self.known[key]


class SourceFile:
    """The tables of one .api file."""

    def __init__(self, emitter, types, rpcs):
        self.emitter = emitter
        self.types = types
        self.rpcs = rpcs
        self.out = []
        self.lists = StringLists()
        self.lists.out = self.out
        self.once = {}            # initializer -> name of the static object

    def text(self):
        for t in self.types:
            self.add_type(t)
        for r in self.rpcs:
            path = f"/{r.package.proto}.{r.service}/{r.method}"
            stream = ", ".join("true" if x else "false" for x in (r.stream_request, r.stream_response))
            self.out.append(f"const struct rpc {r.c_name} = {{ {c_str(path)}, &{c_type(r.request_type)}, "
                            f"&{c_type(r.response_type)}, {stream} }};\n")
        return HEADER + '#include "codec/atoms.h"\n#include "codec/schema_tables.h"\n#include "codec/types.h"\n\n' + "".join(self.out)

    def shared(self, declaration, prefix, body):
        """A static object that is written once however often it is needed."""
        if body not in self.once:
            name = self.once[body] = f"{prefix}_{len(self.once)}"
            self.out.append(f"static const {declaration % name} = {body};\n")
        return self.once[body]

    def facts(self, f):
        w = f.words
        values = w["enum"].split("|") if "enum" in w else None
        known = w["known"].split("|") if "known" in w else None
        merge_key = w.get("merge", True)
        if not (f.default_json or values or known or merge_key is not True or f.go_type or f.enum or {"map", "gate", "rules"} & w.keys()):
            return "schema_no_facts"
        keys = "NULL"
        if "map" in w:
            keys = self.shared("atom %s[]", "keys", "{ " + "".join(f"A_{identifier(k)}, " for k in w["map"].split(",")) + "0 }")
        strings = [f.default_json, "" if merge_key is True else merge_key]
        body = "{ " + ", ".join([c_str(s) for s in strings] + [
            keys, self.lists.add(values) if values else "NULL", self.lists.add(known) if known else "NULL",
            c_str(w.get("gate", "")), c_str(w.get("rules", "")), c_str(f.go_type), self.enum(f.enum) if f.enum else "NULL"]) + " }"
        return self.shared("struct field_facts %s", "facts", body)

    def enum(self, values):
        body = "{ " + "".join(f"{{ {c_str(name)}, {number} }}, " for name, number in values) + "{ { NULL, 0 }, 0 } }"
        return self.shared("struct enum_value %s[]", "enum", body)

    def field(self, f):
        flags = " | ".join("FIELD_" + x for x in f.flags) or "0"
        kind_type = f"&{c_type(f.type)}" if f.type else "NULL"
        facts = self.facts(f)
        return (f"\t{{ A_{identifier(f.name)}, {f.number or 0}, KIND_{f.kind}, SHAPE_{f.shape.upper()}, {flags}, {kind_type}, "
                f"&{facts}, {c_string(f.description or '')} }},\n")

    def add_type(self, t):
        suffix = c_type(t)[len("type_"):]
        fields = wire = slots = "NULL"
        mult, table = 0, [0]
        if t.fields:
            rows = [self.field(f) for f in t.fields]
            fields = "fields_" + suffix
            self.out.append(f"static const struct field {fields}[] = {{\n{''.join(rows)}}};\n")
            mult, table = self.emitter.perfect_hash(t)
            slots = self.shared("uint16_t %s[]", "slots", "{ " + ", ".join(map(str, table)) + " }")
        if t.wire:
            index = {id(f): i for i, f in enumerate(t.fields)}
            body = "{ " + ", ".join(
                f"{{ {number}, {0 if embedded else index[id(f)]}, {'&' + c_type(embedded) if embedded else 'NULL'} }}"
                for number, embedded, f in t.wire) + " }"
            wire = self.shared("struct wire %s[]", "wire", body)
        flags = [name for name, on in (("TYPE_KIND", t.kind), ("TYPE_LIST", is_list(t)), ("TYPE_PROTO3", t.package.proto),
                                       ("TYPE_ATOMIC", t.atomic), ("TYPE_DEFAULTS", t.defaults)) if on]
        places = ", ".join(map(c_str, (t.package.name, *split_api_version(t.api_version))))
        package = self.shared("struct type_package %s", "package", f"{{ {places} }}")
        self.out.append(
            f"const struct type {c_type(t)} = {{\n\t{c_str(t.name)}, &{package},\n\t{SIMPLE_FORMS[t.form]}, {' | '.join(flags) or 0}, {len(t.fields)}, "
            f"{len(t.wire)}, {len(table) - 1}, {mult}u, {fields}, {wire}, {slots},\n"
            f"\t{c_str(t.zero_json)},\n\t{c_str(t.zero_wire)},\n\t{c_string(t.description or '')},\n}};\n\n")


def is_list(t):
    members = {f.name: f for f in t.members}
    return (t.kind and t.name.endswith("List") and "metadata" in members and "items" in members
            and members["metadata"].base.endswith("ListMeta"))


def c_type(t):
    return f"type_{identifier(t.package.name)}_{t.name}"


def find_perfect_hash(atoms):
    size = 1
    while size < len(atoms):
        size *= 2
    mult = 0x9E3779B1
    while True:
        for _ in range(400):
            used = set()
            for a in atoms:
                slot = (a * mult & 0xffffffff) >> 16 & size - 1
                if slot in used:
                    break
                used.add(slot)
            else:
                table = [0] * size
                for i, a in enumerate(atoms):
                    table[(a * mult & 0xffffffff) >> 16 & size - 1] = i + 1
                return mult, table
            mult = (mult * 1664525 + 1013904223) & 0xffffffff | 1
        size *= 2
