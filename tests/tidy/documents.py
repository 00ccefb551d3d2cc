# SPDX-License-Identifier: Apache-2.0
"""What documents name must be there: files, sections that links point to, commands with their flags."""
import fnmatch
import pathlib
import re
import shlex
import subprocess

# Where paths in documents begin.
FOLDERS = ("charts", "cmake", "common", "crds", "docs", "examples", "operator", "scripts", "tests",
           "trainer_function")
# Made by what the documents tell to run.
MADE = ("examples/quickstart/digits",)
PROGRAMS = r"(?:[\w./-]+/)?(?:kubectl lambdadnn|lambdadnn-operator|lambdadnn)"


def code_of(text):
    """(line number, code) of every span, which may go on in the next line of its paragraph, and of
    every command line of a fenced block; one that ends with a backslash goes on with the next."""
    fenced, begun, joined = False, 0, ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        begun = begun if joined else number
        fence = line.lstrip().startswith("```")
        if not fenced and line.strip() and not fence:
            joined += line + "\n"
            continue
        if not fenced:
            for span in re.finditer(r"`([^`]+)`", joined):
                yield begun + joined[:span.start()].count("\n"), " ".join(span[1].split())
        elif not fence:
            joined += line
            if joined.endswith("\\"):
                joined = joined[:-1] + " "
                continue
            yield begun, joined
        joined, fenced = "", fenced ^ fence


def words_of(command):
    """The words of a command line up to what begins another command, or a comment."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # prose with an apostrophe
        words = command.split()
    for i, word in enumerate(words):
        if word in ("|", "||", "&&", "&", ";", ">", "2>&1"):
            return words[:i]
        if word.endswith(";"):
            return words[:i] + [word[:-1]]
    return words


class Programs:
    """The commands of the programs beside `cli`, and their flags, from their help."""

    def __init__(self, cli):
        self.cli = pathlib.Path(cli)
        self.helps = {}
        section = self.help("lambdadnn").split("Subcommands:")[-1]
        self.commands = set(re.findall(r"^  (\w[\w-]*)", section, re.MULTILINE))

    def help(self, program, *command):
        """"" where this build has no such program."""
        key = (program, *command)
        if key not in self.helps:
            path = self.cli.with_name(program) if program != "lambdadnn" else self.cli
            done = subprocess.run([path, *command, "--help"], capture_output=True, text=True) \
                if path.exists() else None
            self.helps[key] = done.stdout if done and done.returncode == 0 else ""
        return self.helps[key]

    def flags(self, program, *command):
        return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", self.help(program, *command)))

    def all_flags(self):
        known = self.flags("lambdadnn") | self.flags("lambdadnn-operator")
        return known.union(*(self.flags("lambdadnn", command) for command in self.commands))


def flag_problems(words, known, what):
    for word in words:
        match = re.match(r"--?[a-zA-Z][\w-]*", word)
        if match and known and match[0] not in known:
            yield f"gives {what} the flag {match[0]}, which it does not have"


def command_problems(code, programs):
    # helm's releases and charts are called as the program is; flags behind them are helm's.
    code = re.sub(r"(?<![\w./-])helm\s+[^;&|#\n]*", "", code)
    for match in re.finditer(rf"(?<![\w./-])({PROGRAMS})(?=\s)", code):
        program = match[1].split("/")[-1]
        words = words_of(code[match.end():])
        if program == "lambdadnn-operator":
            yield from flag_problems(words, programs.flags(program), program)
            continue
        if not words or not re.fullmatch(r"[a-z][\w|-]*", words[0]):
            continue
        for command in words[0].split("|"):
            if command not in programs.commands:
                yield f"names the command `lambdadnn {command}`, which does not exist"
                continue
            path, rest = [command], words[1:]
            if command == "dataset" and rest:
                path.append(rest.pop(0))
            known = programs.flags("lambdadnn", *path)
            yield from flag_problems(rest, known, f"`lambdadnn {' '.join(path)}`")


def check_scripts(tree):
    """Flags that code gives a script stand in it."""
    for name in tree.sources(".md"):
        for number, code in code_of(tree.text(name)):
            for match in re.finditer(r"(?<![\w/])(scripts/[\w.-]+\.sh)(?=\s)", code):
                if match[1] not in tree.files:
                    continue  # check_paths_exist tells
                for word in words_of(code[match.end():]):
                    flag = re.match(r"--[a-z][\w-]*", word)
                    if flag and not re.search(rf"{flag[0]}(?![\w-])", tree.text(match[1])):
                        yield name, number, f"gives {match[1]} the flag {flag[0]}, which it does not have"


def check_commands(tree, cli):
    """Commands in code are those of the programs, with flags that they have."""
    if not cli:
        return
    programs = Programs(cli)
    elsewhere = " ".join(tree.text(name) for name in tree.files
                         if name.startswith(("scripts/", "tests/")) and
                         name.endswith((".sh", ".py")) and not name.startswith("tests/tidy/"))
    known = programs.all_flags() | set(re.findall(r"(?<![\w-])--[a-z][\w-]*", elsewhere))
    for name in tree.sources(".md"):
        for number, code in code_of(tree.text(name)):
            for problem in command_problems(code, programs):
                yield name, number, problem
            alone = re.match(r"--[a-z][\w-]*", code)
            if alone and alone[0] not in known:
                yield name, number, f"names the flag {alone[0]}, which no program has"


def check_paths_exist(tree):
    folders = {str(parent) for name in tree.files for parent in pathlib.Path(name).parents}
    there = folders | set(tree.files)
    pattern = re.compile(rf"(?<![\w/.:-])((?:{'|'.join(FOLDERS)})/[\w./*-]*[\w*])(.?)")
    for name in tree.sources(".md"):
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            for path, behind in pattern.findall(line):
                # A NAME to be filled in, {a,b}, <x>, or the beginning of several.
                if re.search(r"[A-Z]{2}", path) and path not in there or (behind and behind in "{<…$"):
                    continue
                if path.startswith(MADE) or path in there:
                    continue
                if "*" in path and fnmatch.filter(there, path):
                    continue
                if any(f"{path}{suffix}" in there for suffix in (".h", ".cc", ".py")):
                    continue  # a pair of files by its common name
                yield name, number, f"names {path}, which does not exist"


def slugs(text):
    """The anchors that a page makes of its headings."""
    fenced, seen = False, {}
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = re.match(r"#{1,6} +(.*)", line)
        if fenced or not heading:
            continue
        slug = re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        yield slug if count == 0 else f"{slug}-{count}"


def check_anchors(tree):
    for name in tree.sources(".md"):
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                page = tree.root / pathlib.Path(name).parent / target if target else tree.root / name
                if page.suffix == ".md" and page.exists() and \
                        anchor not in set(slugs(page.read_text(encoding="utf-8"))):
                    yield name, number, f"links to #{anchor}, which is no section of {page.name}"
