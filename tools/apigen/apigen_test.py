"""Tests of the schema language: what its mistakes are answered with, and what like, embed and descriptions mean."""

import os
import tempfile
import unittest

from emit import hash_table, name_hash
from language import ApiError, read_files
from model import resolve


def read(*texts):
    with tempfile.TemporaryDirectory() as directory:
        here = os.getcwd()
        os.chdir(directory)
        try:
            paths = []
            for i, text in enumerate(texts):
                paths.append(f"{chr(ord('a') + i)}.api")
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            return resolve(read_files(paths))
        finally:
            os.chdir(here)


class Mistakes(unittest.TestCase):
    ROWS = [
        ("type A\n", 'a.api:1: "type" before the first package'),
        ("package p\nthing A\n", 'a.api:2: "thing" does not begin a statement'),
        ("package p\n\tx 1 string\n", "a.api:2: an indented line belongs to a kind, a type, a resource, an enum or a like"),
        ("package p\ntype A\n\tx 1\n", "a.api:3: a field is NAME NUMBER TYPE ...; the number is - when it is not on the wire"),
        ("package p\ntype A\n\tx 0 string\n", 'a.api:3: "0" is no field number'),
        ("package p\ntype A\n\tx 1 strin\n", 'a.api:3: there is no type "strin"'),
        ("package p\ntype A\n\tx 1 q.B\n", 'a.api:3: there is no type "q.B"'),
        ("package p\ntype A\n\tx 1 string\n\tx 2 string\n", 'a.api:4: A already has a field "x"'),
        ("package p\ntype A\n\tx 1 string\n\ty 1 string\n", "a.api:4: A already has a field with number 1"),
        ("package p\ntype A\n\tx 1 string requird\n", 'a.api:3: "requird" is not known here; known are: always'),
        ("package p\ntype A\n\tx 1 string gate=A gate=B\n", 'a.api:3: "gate" is given twice'),
        ("package p\ntype A\n\tx 1 string rules(a\n", 'a.api:3: a quote (") or parenthesis is not closed'),
        ("package p\ntype A\ntype A\n", 'a.api:3: "A" is already defined in package p'),
        ("package p\nkind A\n", "a.api:2: a kind needs an apiVersion: give one in the package line"),
        ("package p\ntype A like q\n", 'a.api:2: there is no such "A" in package "q"'),
        ("package p\ntype A like q\npackage q\ntype A like p\n", "a.api:2: like goes in a circle"),
        ("package p\nlike q A\n", 'a.api:2: there is no type "A" in package "q"'),
        ("package p\ntype A\n\tx - string\n\tembed - B\ntype B\n\tx - string\n",
         'a.api:2: "x" comes twice in A, once from an embedded type'),
        ("package p\nenum E A\n", 'a.api:2: "A": expected NAME=NUMBER'),
        ("package p apiVersion v1\nkind A\nresource as A\n", "a.api:3: package p has resources and needs a priority"),
        ("package p\nrpc A(B) C\n", "a.api:2: rpc Service.Method([stream ]Request) [stream ]Response"),
        ("package p\n-- lost\n", "a.api:2: a description belongs to a kind, a type or a field"),
    ]

    def test_messages(self):
        for text, want in self.ROWS:
            with self.subTest(text=text), self.assertRaises(ApiError) as caught:
                read(text)
            self.assertTrue(str(caught.exception).startswith(want), f"{caught.exception} is not {want}")


class Meaning(unittest.TestCase):
    def test_like_means_the_names_of_its_own_package(self):
        model = read("package g/v1\ntype A -- An A.\n\tx 1 B -- An x.\n\ty 2 *C\ntype B\n\tz 1 E\ntype C\nalias E string enum=P|Q\n",
                     "package g/v1beta1\ntype A like g/v1\nlike g/v1\n\tB E\n")
        a = model.schema.packages["g/v1beta1"].types["A"]
        self.assertEqual([f.type.package.name for f in a.fields], ["g/v1beta1", "g/v1"])
        self.assertEqual((a.description, a.fields[0].description), ("An A.", "An x."))
        self.assertEqual(a.fields[0].type.fields[0].go_type, "v1beta1.E")

    def test_descriptions_come_from_the_most_stable_version(self):
        model = read("package g/v1beta1\ntype A\n\tx 1 string\n\tnew 2 string -- New.\n"
                     "package g/v1\ntype A\n\tx 1 string\n\t\t-- First\n\t\t-- and second.\n")
        a = model.schema.packages["g/v1beta1"].types["A"]
        self.assertEqual([f.description for f in a.fields], ["First and second.", "New."])

    def test_embedded_fields_are_flattened_in_json_and_nested_on_the_wire(self):
        model = read("package p\ntype A\n\tname 1 string required\n\tembed 2 B\ntype B\n\tsize 7 int64 always\n")
        a = model.schema.packages["p"].types["A"]
        self.assertEqual([f.name for f in a.fields], ["name", "size"])
        self.assertEqual(a.zero_json, '{"name":"","size":0}')
        self.assertEqual(a.zero_wire, b"\x0a\x00\x12\x02\x38\x00")

    def test_values_with_blanks_and_long_lists(self):
        model = read('package p\ntype A\n\tx 1 E\nalias E string known="a b||c|"\ntype B\n\tx 1 F\nalias F string enum=P|\n\tQ|R\n')
        types = model.schema.packages["p"].types
        self.assertEqual(types["A"].fields[0].words["known"], "a b||c|")
        self.assertEqual(types["B"].fields[0].words["enum"], "P|Q|R")

    def test_hash_table_holds_everything(self):
        names = [f"name{i}" for i in range(1000)]
        hashes = [name_hash(n) for n in names]
        slots = hash_table(hashes)
        for i, h in enumerate(hashes):
            probes = 0
            while slots[h & len(slots) - 1] != i + 1:
                h, probes = h + 1, probes + 1
                self.assertLess(probes, 32)


if __name__ == "__main__":
    unittest.main()
