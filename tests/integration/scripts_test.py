# SPDX-License-Identifier: Apache-2.0
"""The scripts of scripts/ as their users meet them, in copies beside stand-ins for what installs
and compiles (ctest, python3 and the program under test are real), and what `cmake --install` installs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from options import OPTIONS
from script_case import DONE, FAILED, ROOT, USAGE, ScriptTest


class TestScript(ScriptTest):
    # Leaves a process that no group, session or parent leads to; its number is in `pid`.
    LEAVES = ("setsid sh -c 'echo $$ >{0}/pid; exec sleep 500' >&- 2>&- & "
              "until grep -qs ^sleep /proc/$(cat {0}/pid)/cmdline; do :; done")

    def made_of(self, *lines):
        """A build folder with these ctest tests; configuring and building it is nothing."""
        self.tool("cmake", f"""
            mkdir -p {self.root}/build/release
            cp {self.root}/tests.cmake {self.root}/build/release/CTestTestfile.cmake""")
        (self.root / "tests.cmake").write_text("\n".join(
            f'add_test(t{i} sh -c [==[{line}]==])\n'
            f'set_tests_properties(t{i} PROPERTIES LABELS unit SKIP_RETURN_CODE 77 '
            f'ENVIRONMENT_MODIFICATION LAMBDADNN_TEST=set:t{i})'
            for i, line in enumerate(lines)))

    def unit(self, *options, **environment):
        return self.run_script("test.sh", "--no-setup", "--tier", "unit", *options, **environment)

    def checkout(self):
        """Results are remembered of what git knows."""
        subprocess.run(["git", "init", "-q", self.root], check=True)
        (self.root / ".gitignore").write_text("/build/\n/cache/\n/calls\n/ran\n__pycache__/\n")

    def ran(self):
        """How often a test of `echo >>ran` did run."""
        path = self.root / "ran"
        return path.read_text().count("\n") if path.exists() else 0

    def test_the_list_names_every_tier_and_what_the_ci_set_takes(self):
        done = self.run_script("test.sh", "--list")
        self.assertEqual(done.returncode, DONE, self.said)
        table = done.stdout.splitlines()
        budgets = {line.split()[0]: int(line.split()[1]) for line in table[1:-1]}
        self.assertEqual(set(budgets), {
            "build", "unit", "tidy", "conformance", "simulation", "integration", "timing",
            "sanitizers", "fuzz", "e2e"})
        ci = sum(budgets.values()) - budgets["timing"]
        self.assertLessEqual(ci, 15 * 60)
        self.assertEqual(
            table[-1], f"the ci set in all: {ci} s of at most 15 minutes; it is ended after 85")

    def test_budgets_beyond_the_ci_sets_are_refused(self):
        script = self.root / "scripts/test.sh"
        script.write_text(re.sub(r"(?m)^integration \|\d+ *\|", "integration |999|",
                                 script.read_text()))
        self.one_error(self.run_script("test.sh", "--list"), USAGE, "more than the 15", "lower one")

    def test_usage(self):
        self.one_error(self.run_script("test.sh", "--lists"), USAGE, "--lists", "--help")
        self.one_error(self.run_script("test.sh", "--tier", "units"), USAGE, "units", "--list")
        self.one_error(self.run_script("test.sh", "--tier"), USAGE, "--list")
        self.one_error(self.run_script("test.sh", "--tier", "build"), USAGE, "build")
        self.one_error(self.run_script("test.sh", "--without", "unti"), USAGE, "unti", "--list")
        self.one_error(self.run_script("test.sh", "--deadline", "soon"), USAGE, "soon", "minutes")
        self.assertEqual(self.run_script("test.sh", "--help").returncode, DONE)
        self.assertIn("--tier NAME", self.said)
        self.assertNotIn("-uo pipefail", self.said)

    def test_what_passes_ends_with_the_count_and_0(self):
        self.made_of("exit 0", "exit 0")
        done = self.unit()
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed")
        self.assertIn("== what did not run", done.stdout)
        self.assertIn("tidy: not asked for", done.stdout)
        self.assertIn("timing: needs a quiet machine", done.stdout)

    def test_a_failure_ends_with_1_and_shows_what_the_test_said(self):
        self.made_of("exit 0", "echo it broke here; exit 1")
        done = self.unit()
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertIn("it broke here", done.stdout)

    def test_no_test_at_all_is_a_failure(self):
        self.made_of()
        self.assertEqual(self.unit().returncode, FAILED, self.said)
        self.assertIn("ctest ran no test", self.said)

    def test_a_build_that_fails_is_a_failure(self):
        self.tool("cmake", "echo 'a.cc:1: error: no such thing'; exit 1")
        done = self.unit()
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertIn("a.cc:1: error: no such thing", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed")

    def test_what_skipped_itself_is_listed_with_its_reason(self):
        self.made_of(
            "echo '[ RUN      ] A.B'; echo 'x.cc:3: Skipped'; echo 'no groups here'; echo; "
            "echo '[  SKIPPED ] A.B (0 ms)'; echo '[  SKIPPED ] 1 test, listed below:'; "
            "echo '[  SKIPPED ] A.B'",
            "echo 'left out: A::test_c: it is not root: really'",
            "echo the servers are not built; exit 77",
            "exit 0")
        done = self.unit()
        self.assertEqual(done.returncode, DONE, self.said)
        left_out = done.stdout.split("== what did not run\n")[1].splitlines()
        # In the order in which they ended, two at a time.
        self.assertEqual(sorted(left_out[:3]), [
            "unit: release: t0: A.B: no groups here",
            "unit: release: t1: A::test_c: it is not root: really",
            "unit: release: t2: the servers are not built"])
        # A program that did nothing has not passed.
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 0 failed")
        self.assertIn("release: 3 passed, 0 failed, 1 skipped", done.stdout)

    def test_what_passed_with_the_same_inputs_is_not_run_again(self):
        self.checkout()
        self.made_of(f"echo >>{self.root}/ran", "exit 0")
        self.assertEqual(self.unit().returncode, DONE, self.said)
        self.assertNotIn("cached", self.said)
        done = self.unit()
        self.assertEqual((done.returncode, self.ran()), (DONE, 1), self.said)
        self.assertRegex(done.stdout, r"(?m)^t0: cached \(passed in [0-9.]+ s on \d{4}-\d\d-\d\d\)$")
        self.assertIn("release: 2 passed (2 cached), 0 failed", done.stdout)
        self.assertRegex(done.stdout.splitlines()[-2], "^of those that passed, 2 were not run")
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed")

        self.assertEqual(self.unit("--no-cache").returncode, DONE, self.said)
        self.assertEqual(self.ran(), 2)
        (self.root / "what_it_may_read").write_text("new")
        self.assertEqual(self.unit().returncode, DONE, self.said)
        self.assertEqual(self.ran(), 3)
        self.assertEqual(self.unit(LAMBDADNN_OTHER="1").returncode, DONE, self.said)
        self.assertEqual(self.ran(), 4)

    def test_a_failure_and_a_skip_are_not_remembered(self):
        self.checkout()
        self.made_of(f"echo >>{self.root}/ran; exit 1", f"echo >>{self.root}/ran; exit 77",
                     f"echo >>{self.root}/ran; echo '[ RUN      ] A.B'; echo '[  SKIPPED ] A.B (0 ms)'")
        for _ in range(2):
            self.assertEqual(self.unit().returncode, FAILED, self.said)
        self.assertEqual(self.ran(), 6, self.said)
        self.assertNotIn("cached", self.said)

    def test_a_program_is_told_by_what_it_reads(self):
        """Not by sources and documents that another program is made of."""
        self.checkout()
        self.made_of("exit 0")
        program = self.root / "build/release/bin/t"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho >>{self.root}/ran\n")
        program.chmod(0o755)
        data = self.root / "tests/data/one"
        data.parent.mkdir()
        data.write_text("1")
        (self.root / "tests.cmake").write_text(
            f"add_test(t0 {program})\nset_tests_properties(t0 PROPERTIES LABELS unit "
            f"ENVIRONMENT LAMBDADNN_TEST_READS=tests/data)")
        for change, runs in ((lambda: None, 1), (lambda: None, 1),
                             (lambda: (self.root / "README.md").write_text("x"), 1),
                             (lambda: data.write_text("2"), 2),
                             (lambda: program.write_text(program.read_text() + "\n"), 3)):
            change()
            self.assertEqual(self.unit().returncode, DONE, self.said)
            self.assertEqual(self.ran(), runs, self.said)

    def test_the_slowest_are_told(self):
        self.made_of(*["exit 0"] * 22)
        done = self.unit()
        slowest = done.stdout.split("== the slowest tests, in seconds\n")[1].splitlines()
        self.assertRegex(slowest[19], r"^ +\d+\.\d unit +t\d+$")
        self.assertEqual(slowest[20], "== what did not run")

    def test_a_new_build_folder_begins_with_what_took_longest(self):
        known = self.root / "cache/lambdadnn/test_seconds.json"
        known.parent.mkdir(parents=True)
        known.write_text('{"t1": 1, "t3": 9}')
        self.made_of(*["exit 0"] * 4)
        done = self.unit()
        self.assertEqual(re.search(r"Start +\d+: (\w+)", done.stdout)[1], "t3", self.said)

    def hangs(self):
        """Starts a process that no group, session or parent leads to; its number is in `pid`."""
        return (f"setsid sh -c 'echo $$ >{self.root}/pid; exec sleep 500' & "
                f"while ! [ -s {self.root}/pid ]; do :; done; exec sleep 500")

    def assert_ended(self):
        pid = int((self.root / "pid").read_text())
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0]
        except FileNotFoundError:
            return
        self.assertIn(state, "ZX")

    def edit(self, old, new):
        script = self.root / "scripts/test.sh"
        self.assertIn(old, script.read_text())
        script.write_text(script.read_text().replace(old, new))

    def test_one_deadline_ends_everything_with_a_verdict(self):
        self.edit("deadline * 60", "deadline * 1")
        self.made_of("exit 0", self.hangs(), "exit 0")
        done = self.run_script("test.sh", "--no-setup", "--tier", "unit", "--tier", "conformance",
                               "--deadline", "4")
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertIn("unit: release: t1 did not end", done.stdout)
        self.assertRegex(done.stdout, "unit +FAILED: ended after .* the deadline of 4 minutes was reached")
        self.assertRegex(done.stdout, "conformance +FAILED: did not run: the deadline")
        self.assertIn("the deadline of 4 minutes was reached: what had not ended failed", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 2 failed")
        self.assert_ended()

    def test_a_fresh_seed_that_fails_counts_from_the_next_run_on(self):
        self.made_of("exit 0")
        tests = self.root / "tests.cmake"
        tests.write_text(tests.read_text().replace("LABELS unit", "LABELS simulation"))
        simulate = self.root / "build/release/bin/simulate"
        simulate.parent.mkdir(parents=True)
        simulate.write_text("""#!/bin/sh
            echo "simulate $*" >>""" + str(self.calls) + """
            case "$*" in
              "--minutes 0.5") seed=4$$ ;;
              *) seed=$2 ;;
            esac
            echo "FAILED seed $seed: it broke"
            echo "  replay: build/release/bin/simulate --seed $seed --trace"
            echo "9 passed, 1 failed"
            exit 1
            """)
        simulate.chmod(0o755)
        done = self.run_script("test.sh", "--no-setup", "--tier", "simulation")
        self.assertEqual(done.returncode, DONE, self.said)
        seeds = re.findall(r"replay: build/release/bin/simulate --seed (\d+) --trace", done.stdout)
        self.assertEqual(len(seeds), 2, self.said)
        self.assertRegex(done.stdout, "simulation +fresh seeds: 18 passed, 2 failed")
        self.assertRegex(done.stdout, "simulation +NOT COUNTED this time")
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")
        self.calls.write_text("")
        done = self.run_script("test.sh", "--no-setup", "--tier", "simulation")
        self.assertEqual(done.returncode, FAILED, self.said)
        for seed in seeds:
            self.assertIn(f"simulate --seeds {seed}\n", self.calls.read_text())
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 2 failed")

    def test_who_interrupts_it_leaves_nothing_running(self):
        self.made_of(self.hangs())
        script = subprocess.Popen(
            ["bash", self.root / "scripts/test.sh", "--no-setup", "--tier", "unit"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"})
        pid = self.root / "pid"
        while script.poll() is None and not (pid.exists() and pid.read_text()):
            pass
        script.terminate()
        said = script.communicate()[0]
        self.assertEqual(script.returncode, 130, said)
        self.assert_ended()

    def test_no_test_of_the_ci_set_is_long_and_what_it_started_ends_with_it(self):
        self.edit("TEST_SECONDS=300", "TEST_SECONDS=1")
        self.made_of(self.hangs(), "exit 0")
        done = self.unit()
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertIn("t0: took more than 1.0 s, the limit of the ci set; ended", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assert_ended()

    def test_what_pytest_skips_is_told_and_what_it_left_ends(self):
        for name in ("pyproject.toml", "tests/conftest.py"):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "tests/a_test.py").write_text(
            "import subprocess\nimport unittest\n\n\nclass A(unittest.TestCase):\n"
            "    def test_b(self):\n        self.skipTest('it is not root: really')\n\n"
            f"    def test_c(self):\n        subprocess.run(['sh', '-c', {self.LEAVES.format(self.root)!r}])\n")
        self.made_of(f"exec {sys.executable} -m pytest {self.root}/tests/a_test.py")
        done = self.unit()
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertIn("unit: release: t0: A::test_b: it is not root: really", done.stdout)
        self.assertIn("t0: ended 1 processes that it left: sleep 500", done.stdout)
        self.assert_ended()

    def test_what_a_test_that_passed_left_ends_too(self):
        self.made_of(self.LEAVES.format(self.root))
        done = self.unit()
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertIn("t0: ended 1 processes that it left: sleep 500", done.stdout)
        self.assert_ended()

    def test_a_commit_has_its_turn_of_the_long_tests(self):
        """All eighths are the whole."""
        self.checkout()
        self.made_of()
        (self.root / "tests.cmake").write_text("\n".join(
            f'add_test(t{i} true)\nset_tests_properties(t{i} PROPERTIES LABELS '
            f'"integration;{"turns" if i else "share"}")' for i in range(12)))
        self.tool("etcd", "")
        (self.root / "scripts/test_servers.sh").write_text("#!/bin/sh\n")
        turns = []
        for _ in range(8):
            subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit",
                            "-q", "--allow-empty", "-m", "x"], check=True)
            done = self.run_script("test.sh", "--no-setup", "--tier", "integration")
            self.assertEqual(done.returncode, DONE, self.said)
            turn = re.search(r"(?m)^integration: of the 11 others, this commit's turn: (.*)$", done.stdout)
            turns.append(turn[1].split())
            self.assertIn(f"{1 + len(turns[-1])} passed, 0 failed", done.stdout)
        self.assertEqual(sorted(sum(turns, [])), sorted(f"t{i}" for i in range(1, 12)))

    def test_a_cluster_that_cannot_run_is_a_failure_unless_it_is_left_out(self):
        self.made_of("exit 0")
        self.tool("unshare", "exit 1")
        done = self.run_script("test.sh", "--no-setup", "--tier", "e2e", "--tier", "unit")
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertRegex(done.stdout, "e2e +FAILED: on a cluster: this user may not")
        self.assertIn("--without e2e", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        done = self.run_script("test.sh", "--no-setup", "--tier", "e2e", "--tier", "unit",
                               "--without", "e2e")
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertIn("e2e: left out (--without)", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")

    def test_servers_cannot_be_left_out(self):
        self.made_of('test -z "${LAMBDADNN_WITHOUT_SERVERS+set}"')
        self.assertEqual(self.unit(LAMBDADNN_WITHOUT_SERVERS="1").returncode, DONE, self.said)


class ImagesScript(ScriptTest):
    """With stand-ins for what makes images of programs."""

    def setUp(self):
        super().setUp()
        for name, body in {"dpkg-query": "echo install ok installed", "id": "echo 0",
                           "mmdebstrap": "", "buildah": "",
                           "cmake": f'[ "$1" != --install ] || {{ mkdir -p "${{@: -1}}/bin"; '
                                    f'cp {self.root}/program "${{@: -1}}/bin"; }}'}.items():
            self.tool(name, body)
        (self.root / "program").write_text("first")
        shutil.copytree(ROOT / "images", self.root / "images")
        for name in ("LICENSE", "CMakeLists.txt"):
            shutil.copy(ROOT / name, self.root)
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def build(self, *options):
        """Whether an image was made, in a new commit each time."""
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit",
                        "-q", "--allow-empty", "-m", "x"], check=True)
        self.calls.write_text("")
        done = self.run_script("images.sh", "build", "server", *options)
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertTrue((self.root / "build/images/server.tar").exists())
        (self.root / "build/images/server.tar").unlink()
        return any(" bud " in line for line in self.calls.read_text().splitlines())

    def test_platforms(self):
        shutil.rmtree(self.root / ".git")
        self.one_error(self.run_script("images.sh", "build", "--platform", "linux/amd64,linux/s390x"), USAGE,
                       "'linux/s390x'", "linux/amd64 and linux/arm64")
        push = ("images.sh", "push", "server", "--registry", "r", "--platform")
        self.one_error(self.run_script(*push, "linux/arm64"), FAILED,
                       ".tar is not there; run scripts/images.sh build --platform linux/arm64 server")
        (self.root / "build/images").mkdir(parents=True)
        for name in ("server", "server-arm64", "server-amd64"):
            (self.root / f"build/images/{name}.tar").write_text("")
        self.tool("buildah", '[[ "$*" != *" pull "* ]] || echo image')
        for platforms, verb in (("amd64", "push"), ("amd64,linux/arm64", "manifest push --all")):
            self.assertEqual(self.run_script(*push, f"linux/{platforms}").returncode, DONE, self.said)
            pushed = [line for line in self.calls.read_text().splitlines() if "docker://r/lambdadnn-server:" in line]
            self.assertIn(f" vfs {verb} --", pushed[-1])

    def test_an_image_is_taken_from_another_commit_when_all_that_goes_in_is_the_same(self):
        self.assertTrue(self.build("--reuse"))
        self.assertFalse(self.build("--reuse"))
        self.assertIn("of commit", self.said)
        self.assertTrue(self.build())  # its own commit's, unless told
        for name in ("program", "images/server/Dockerfile", "images/assemble.sh", "LICENSE"):
            path = self.root / name
            path.write_text(path.read_text() + "\n# another\n")
            self.assertTrue(self.build("--reuse"), name)
            self.assertFalse(self.build("--reuse"), name)
        self.assertTrue(self.build("--reuse", "--tag", "2"))


class QuickstartScript(ScriptTest):
    def test_its_end_tells_what_was_predicted_and_where_the_results_are(self):
        if not (OPTIONS.bin / "lambdadnn-worker").exists():
            self.skipTest("built without LibTorch: nothing can be trained")
        self.tool("dpkg-query", "echo install ok installed")
        self.tool("cmake", "echo 'ninja: no work to do.'")
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/bin").symlink_to(OPTIONS.bin)
        (self.root / "build/release/build.ninja").write_text("")
        examples = self.root / "examples/quickstart"
        examples.mkdir(parents=True)
        shutil.copy(ROOT / "examples/quickstart/job.yaml", examples)
        # Rendered already, and less of it than the script would render.
        subprocess.run([OPTIONS.bin / "lambdadnn", "dataset", "render-digits", "--out",
                        examples / "digits", "--train", "600", "--test", "200"],
                       check=True, capture_output=True)
        # A plan and a profile that are given: it trains at once.
        done = self.run_script(
            "quickstart.sh", "--set", "spec.training.epochs=1",
            "--set", "spec.objective={fixed: {functions: 2, memory: 512Mi}}",
            "--set", "spec.profile={trainingSamples: 600, trainingBytes: 470400, "
                     "modelBytes: 320808, trainingRate: {slope: '1', intercept: '0'}}")
        self.assertEqual(done.returncode, DONE, self.said)
        for phrase in ("rendering", "building", "configuring", "installing"):
            self.assertNotIn(phrase, done.stdout.lower())
        self.assertRegex(done.stdout, r"(?m)^\s*predicted\s+actual")
        self.assertRegex(done.stdout, r"test accuracy\D+\d")
        paths = dict(re.findall(r"(?m)^(report|model): +(/.*)$", done.stdout))
        self.assertEqual(set(paths), {"report", "model"}, done.stdout)
        for path in paths.values():
            self.assertGreater(pathlib.Path(path).stat().st_size, 0, path)


class Installed(ScriptTest):
    PROGRAMS = {"lambdadnn", "kubectl-lambdadnn", "lambdadnn-operator", "lambdadnn-dataset",
                "lambdadnn-server"}

    def test_what_is_installed_works_from_its_prefix(self):
        prefix = self.root / "prefix"
        done = subprocess.run(["cmake", "--install", OPTIONS.bin.parent, "--prefix", prefix],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = set(self.PROGRAMS)
        if (OPTIONS.bin / "lambdadnn-worker").exists():
            wanted.add("lambdadnn-worker")
        self.assertEqual({path.name for path in (prefix / "bin").iterdir()}, wanted)

        def call(*command):
            """From a folder of no interest, with nothing of the build on the path."""
            done = subprocess.run(command, capture_output=True, text=True, cwd=prefix, timeout=60,
                                  env={"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": str(prefix)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        plan = json.loads(call(
            "lambdadnn", "plan", "-f", ROOT / "examples/profiles/1dcnn-imdb.yaml", "--platform",
            ROOT / "examples/platforms/lambda.yaml", "--model", "lambdadnn", "-o", "json"))
        self.assertTrue(plan["feasible"])
        self.assertIn("Usage: ", call("lambdadnn-operator", "--help"))
        for function in sorted(wanted & {"lambdadnn-server", "lambdadnn-worker"}):
            self.assertIn(f"Example: LAMBDADNN_JOB_KEY=secret PORT=8080 {function}\n",
                          call(function, "--help"))
            self.assertRegex(call(function, "--version"), rf"^{function} [0-9.]+, slice protocol ")
            wrong = subprocess.run([prefix / "bin" / function, "--port=1"], capture_output=True,
                                   text=True, timeout=60)
            self.assertEqual(wrong.returncode, USAGE)
            self.assertIn("'--port=1'", wrong.stderr)
        call("lambdadnn", "dataset", "render-digits", "--out", "digits", "--train", "60", "--test",
             "20")
        self.assertIn("60", call("lambdadnn", "dataset", "inspect", "digits"))
        # kubectl takes a program of this name on the path for a command of its own.
        self.assertTrue((prefix / "bin/kubectl-lambdadnn").exists())
        self.assertIn("Example: ", call("kubectl-lambdadnn", "submit", "--help"))
