"""Reads .api files (the language is described in api/README.md) into plain objects, without resolving anything."""

import re


class ApiError(Exception):
    """A mistake in an .api file; str() is "file:line: what"."""

    def __init__(self, where, what):
        super().__init__(f"{where[0]}:{where[1]}: {what}")


class Package:
    def __init__(self, name, where):
        self.name = name
        self.where = where
        self.api_version = None   # "v1", "apps/v1"; None: no kinds
        self.proto = None         # protobuf package of a wire package
        self.types = {}
        self.enums = {}
        self.aliases = {}
        self.priority = None      # of the group and the version in discovery; None: not served


class Type:
    def __init__(self, package, name, where):
        self.package = package
        self.name = name
        self.where = where
        self.kind = False
        self.list_of = None       # name of the kind that a list kind lists
        self.like = None          # package whose type of the same name this one repeats
        self.atomic = False
        self.form = "object"
        self.api_version = package.api_version
        self.members = []         # Field, in JSON order
        self.description = ""
        self.source = where[0]    # the file that defines it


class Alias:
    """A named type that is not an object: a string with known values, a map, ..."""

    def __init__(self, package, name, where):
        self.package = package
        self.name = name
        self.where = where
        self.like = None
        self.shape = "one"
        self.base = ""
        self.words = {}


class Field:
    def __init__(self, name, number, where):
        self.name = name          # "embed" for an embedded type
        self.number = number      # None: not on the wire
        self.where = where
        self.pointer = False
        self.shape = "one"        # one, list, map
        self.base = ""            # builtin or name of a type
        self.words = {}           # word -> value, or True
        self.description = ""

    @property
    def embed(self):
        return self.name == "embed"


class Resource:
    def __init__(self, package, name, kind, where):
        self.package = package
        self.name = name
        self.kind = kind          # as written: "Pod" or "policy/v1.Eviction"
        self.where = where
        self.words = {}
        self.subresources = []


class Like:
    """like PACKAGE NAME...: types and aliases of another package that this one has too."""

    def __init__(self, package, source, where):
        self.package = package
        self.source = source
        self.where = where
        self.names = []


class Rpc:
    def __init__(self, package, service, method, where):
        self.package = package
        self.service = service
        self.method = method
        self.where = where
        self.request = self.response = ""
        self.stream_request = self.stream_response = False


class Schema:
    """Everything that the files say."""

    def __init__(self):
        self.packages = {}
        self.likes = []
        self.resources = []
        self.rpcs = []
        self.names = set()        # extra names that C code uses
        self.sources = []


FIELD_WORDS = {
    "required", "always", "omitempty", "omitzero", "merge", "retainKeys", "replace", "set", "map", "atomic", "granular",
    "default", "enum", "known", "gate", "rules", "oneof", "keys", "deprecated",
}
ALIAS_WORDS = {"enum", "known"}
TYPE_WORDS = {"atomic", "form", "in"}
RESOURCE_WORDS = {"namespaced", "singular", "short", "categories", "verbs", "key", "storage", "json", "hash"}
FORMS = {"schemaOrBool", "schemaOrArray", "schemaOrStrings"}


def tokens(text, where):
    """Splits at blanks outside of "quotes" and (parentheses); quotes are removed."""
    out, word, depth, quoted, begun = [], "", 0, False, False
    for c in text:
        if c == '"' and depth == 0:
            quoted, begun = not quoted, True
        elif c in " \t" and depth == 0 and not quoted:
            if begun:
                out.append(word)
            word, begun = "", False
        else:
            depth += (c == "(") - (c == ")") if not quoted else 0
            word += c
            begun = True
    if quoted or depth:
        raise ApiError(where, 'a quote (") or parenthesis is not closed')
    if begun:
        out.append(word)
    return out


def words_of(items, known, where):
    """name, name=value and name(value) as a dictionary."""
    words = {}
    for item in items:
        m = re.match(r"(\w+)(?:=(.*)|\((.*)\))?$", item, re.S)
        name = m and m[1]
        if name not in known:
            raise ApiError(where, f'"{item}" is not known here; known are: {", ".join(sorted(known))}')
        if name in words:
            raise ApiError(where, f'"{name}" is given twice')
        words[name] = True if m[2] is None and m[3] is None else m[2] if m[2] is not None else m[3]
    return words


class Parser:
    def __init__(self, schema, path, text):
        self.schema = schema
        self.path = path
        self.text = text
        self.package = None
        self.block = None         # the Type, Resource, Like or enum that indented lines belong to
        self.described = None     # the Type or Field that a line "-- text" describes
        self.where = (path, 0)

    def fail(self, what):
        raise ApiError(self.where, what)

    def run(self):
        pending = ""
        for number, line in enumerate(self.text.split("\n"), 1):
            if pending:
                line, pending = pending + line.lstrip(), ""
            else:
                self.where = (self.path, number)
            if line.endswith("|"):
                pending = line
                continue
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if line.lstrip().startswith("-- "):
                self.more_description(line.lstrip()[3:].strip())
                continue
            body, _, description = line.partition(" -- ")
            body = re.sub(r"\s#.*", "", body)
            items = tokens(body, self.where)
            if not items:
                continue
            if line[0] in " \t":
                self.indented(items, description.strip())
            else:
                self.statement(items, description.strip())

    def statement(self, items, description):
        word, rest = items[0], items[1:]
        handler = getattr(self, "do_" + word, None)
        if not handler:
            self.fail(f'"{word}" does not begin a statement')
        if word not in ("package", "names") and not self.package:
            self.fail(f'"{word}" before the first package')
        if not rest:
            self.fail(f'"{word}" needs a name')
        self.block = self.described = None
        handler(rest, description)

    def indented(self, items, description):
        if isinstance(self.block, Type):
            self.field(items, description)
        elif isinstance(self.block, Resource):
            self.subresource(items)
        elif isinstance(self.block, list):
            self.enum_values(items)
        elif isinstance(self.block, Like):
            self.block.names += items
        else:
            self.fail("an indented line belongs to a kind, a type, a resource, an enum or a like")

    def more_description(self, text):
        if not self.described:
            self.fail("a description belongs to a kind, a type or a field")
        self.described.description = (self.described.description + " " + text).strip()

    def do_package(self, rest, _):
        name = rest[0]
        package = self.schema.packages.get(name)
        if not package:
            package = self.schema.packages[name] = Package(name, self.where)
        self.package = package
        pairs = rest[1:]
        if len(pairs) % 2:
            self.fail("package NAME [apiVersion GROUP/VERSION] [priority GROUP,VERSION] [proto3 PACKAGE]")
        for key, value in zip(pairs[::2], pairs[1::2]):
            if key == "apiVersion":
                package.api_version = value
            elif key == "priority" and re.fullmatch(r"\d+,\d+", value):
                package.priority = tuple(map(int, value.split(",")))
            elif key == "proto3":
                package.proto = value
            else:
                self.fail(f'"{key} {value}" is not known here; known are: apiVersion, priority, proto3')

    def do_names(self, rest, _):
        self.schema.names.update(rest)

    def check_new(self, name):
        for table in (self.package.types, self.package.enums, self.package.aliases):
            if name in table:
                self.fail(f'"{name}" is already defined in package {self.package.name}')

    def new_type(self, name, description):
        self.check_new(name)
        t = Type(self.package, name, self.where)
        t.description = description
        self.package.types[name] = self.described = t
        return t

    def take_like(self, items):
        """Removes "like PACKAGE" from the items and returns the package."""
        if "like" not in items:
            return None
        at = items.index("like")
        if at + 1 == len(items):
            self.fail("like needs a package")
        package = items[at + 1]
        del items[at:at + 2]
        return package

    def do_type(self, rest, description):
        t = self.new_type(rest[0], description)
        items = rest[1:]
        t.like = self.take_like(items)
        words = words_of(items, TYPE_WORDS, self.where)
        t.atomic = "atomic" in words
        t.form = words.get("form", "object")
        if t.form != "object" and t.form not in FORMS:
            self.fail(f"form is one of {', '.join(sorted(FORMS))}")
        t.api_version = words.get("in", t.api_version)
        self.block = t
        return t

    def do_kind(self, rest, description):
        t = self.do_type(rest, description)
        t.kind = True
        if not t.api_version:
            self.fail("a kind needs an apiVersion: give one in the package line")

    def do_list(self, rest, description):
        t = self.new_type(rest[0] + "List", description)
        t.kind = True
        t.list_of = rest[0]
        for name, number, text, words in (("metadata", 1, "meta/v1.ListMeta", {}), ("items", 2, "[]" + rest[0], {"required": True})):
            f = Field(name, number, self.where)
            self.field_type(f, text)
            f.words = words
            t.members.append(f)

    def do_like(self, rest, _):
        self.block = Like(self.package, rest[0], self.where)
        self.block.names = rest[1:]
        self.schema.likes.append(self.block)

    def do_alias(self, rest, _):
        self.check_new(rest[0])
        alias = self.package.aliases[rest[0]] = Alias(self.package, rest[0], self.where)
        items = rest[1:]
        alias.like = self.take_like(items)
        if not alias.like:
            if not items:
                self.fail("alias NAME TYPE ... or alias NAME like PACKAGE")
            f = Field(rest[0], None, self.where)
            self.field_type(f, items.pop(0))
            alias.shape, alias.base = f.shape, f.base
        alias.words = words_of(items, ALIAS_WORDS, self.where)

    def do_enum(self, rest, _):
        self.check_new(rest[0])
        self.block = self.package.enums[rest[0]] = []
        self.enum_values(rest[1:])

    def enum_values(self, items):
        for item in items:
            name, _, number = item.partition("=")
            if not re.fullmatch(r"-?\d+", number):
                self.fail(f'"{item}": expected NAME=NUMBER')
            self.block.append((name, int(number)))

    def do_rpc(self, rest, _):
        text = " ".join(rest)
        m = re.fullmatch(r"(\w+)\.(\w+)\((stream )?(\S+)\) (stream )?(\S+)", text)
        if not m:
            self.fail("rpc Service.Method([stream ]Request) [stream ]Response")
        rpc = Rpc(self.package, m[1], m[2], self.where)
        rpc.stream_request, rpc.request = bool(m[3]), m[4]
        rpc.stream_response, rpc.response = bool(m[5]), m[6]
        self.schema.rpcs.append(rpc)

    def do_resource(self, rest, _):
        if len(rest) < 2:
            self.fail("resource NAME KIND ...")
        r = Resource(self.package, rest[0], rest[1], self.where)
        r.words = words_of(rest[2:], RESOURCE_WORDS, self.where)
        self.schema.resources.append(r)
        self.block = r

    def subresource(self, items):
        if len(items) not in (2, 3):
            self.fail("a subresource is NAME [KIND] VERB,VERB...")
        parent = self.block
        r = Resource(self.package, parent.name + "/" + items[0], items[1] if len(items) == 3 else parent.kind, self.where)
        r.words = {"verbs": items[-1], **({"namespaced": True} if "namespaced" in parent.words else {})}
        parent.subresources.append(r)

    def field(self, items, description):
        if len(items) < 3:
            self.fail("a field is NAME NUMBER TYPE ...; the number is - when it is not on the wire")
        name, number, text = items[:3]
        if number != "-" and not (number.isdigit() and 0 < int(number) < 65536):
            self.fail(f'"{number}" is no field number')
        f = Field(name, None if number == "-" else int(number), self.where)
        self.field_type(f, text)
        f.words = words_of(items[3:], FIELD_WORDS, self.where)
        f.description = description
        t = self.block
        if t.like:
            self.fail(f"{t.name} is like {t.like} and has no fields of its own")
        if not f.embed and any(x.name == name for x in t.members):
            self.fail(f'{t.name} already has a field "{name}"')
        if f.number and any(x.number == f.number for x in t.members):
            self.fail(f"{t.name} already has a field with number {number}")
        t.members.append(f)
        self.described = f

    def field_type(self, f, text):
        if text.startswith("*"):
            f.pointer, text = True, text[1:]
        if text.startswith("[]"):
            f.shape, text = "list", text[2:]
        elif text.startswith("map[") and text.endswith("]"):
            f.shape, text = "map", text[4:-1]
        if not re.fullmatch(r"[\w/.-]+", text):
            self.fail(f'"{text}" is no type')
        f.base = text


def read_files(paths):
    schema = Schema()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            Parser(schema, path, file.read()).run()
        schema.sources.append(path)
    return schema
