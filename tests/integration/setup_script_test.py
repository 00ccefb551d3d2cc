# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh as its users meet it, beside stand-ins for what installs."""
import pathlib
import shutil

from script_case import DONE, ENVIRONMENT, FAILED, ROOT, USAGE, ScriptTest


class SetupScript(ScriptTest):
    def setUp(self):
        super().setUp()
        (self.root / "tests/tidy").mkdir()
        shutil.copy(ROOT / "tests/tidy/ruff.txt", self.root / "tests/tidy")
        self.installed = self.root / "installed"
        self.installed.write_text("")
        self.tool("sudo", 'exec "$@"')
        self.tool("dpkg-query", f'grep -qx -- "${{@: -1}}" {self.installed} && echo "install ok installed"')
        self.tool("apt-get", f'[ "$1" != install ] || for name in "$@"; do echo "$name"; done >>{self.installed}')
        self.arrow = pathlib.Path(self.run_script("arrow.sh", "path").stdout.strip())
        self.arrow.mkdir(parents=True)
        (self.arrow / "version").touch()

    def calls_of(self, name):
        return [line for line in self.calls.read_text().splitlines() if line.startswith(name)]

    def everything_is_installed(self):
        done = self.run_script("setup.sh", "--check")
        names = done.stdout.removeprefix("missing: ").split()
        self.assertGreater(len(names), 20, self.said)
        self.installed.write_text("\n".join(names) + "\n")
        ruff = self.root / "cache/lambdadnn" / next(name for name in names if name.startswith("ruff-"))
        (ruff / "bin").mkdir(parents=True)
        shutil.copy(self.tools / "sudo", ruff / "bin/ruff")
        return ruff

    def test_the_second_run_changes_nothing(self):
        done = self.run_script("setup.sh", "--build")
        self.assertEqual(done.returncode, DONE, self.said)
        self.assertRegex(done.stdout, r"^installing \d+ packages with apt: g\+\+ cmake")
        self.assertEqual(len(self.calls_of("apt-get")), 2, self.calls.read_text())
        self.calls.write_text("")
        done = self.run_script("setup.sh", "--build")
        self.assertEqual((done.returncode, done.stdout), (DONE, ""), self.said)
        self.assertEqual(self.calls_of("apt-get"), [])

    def test_check_installs_nothing(self):
        done = self.run_script("setup.sh", "--check")
        self.assertEqual(done.returncode, FAILED, self.said)
        self.assertRegex(done.stdout, r"^missing: g\+\+ ")
        self.everything_is_installed()
        self.assertEqual(self.run_script("setup.sh", "--check").returncode, DONE, self.said)
        self.assertEqual(self.calls_of("apt-get"), [])

    def test_an_unknown_option(self):
        self.one_error(self.run_script("setup.sh", "--bulid"), USAGE, "--bulid", "--help")

    def test_lists_that_cannot_be_updated(self):
        self.tool("apt-get", 'echo "E: no network"; [ "$1" != update ] || exit 100')
        self.one_error(self.run_script("setup.sh", "--build"), ENVIRONMENT, "package lists",
                       "run this again")

    def test_packages_that_cannot_be_installed(self):
        self.tool("apt-get", '[ "$1" = update ] || exit 100')
        self.one_error(self.run_script("setup.sh", "--build"), ENVIRONMENT, "could not install",
                       "run this again")

    def test_a_system_without_apt(self):
        """Only what the script needs up to there is on its path."""
        for name in ("bash", "dirname", "sed", "grep", "cat", "id"):
            (self.tools / name).symlink_to(shutil.which(name))
        (self.tools / "apt-get").unlink()
        done = self.run_script("setup.sh", "--build", path=str(self.tools))
        self.one_error(done, ENVIRONMENT, "apt-get is not here", "g++ cmake")

    def test_a_go_that_cannot_be_fetched(self):
        self.everything_is_installed()
        self.tool("go", r"""
            [ "$1" != env ] || { echo go1.19; exit 0; }
            printf '{\n\t"Path": "golang.org/toolchain",\n\t"Error": "Get \\"proxy\\": refused"\n}\n'
            exit 1""")
        self.one_error(self.run_script("setup.sh"), ENVIRONMENT, 'Get "proxy": refused',
                       "proxy (GOPROXY) reachable")

    def test_a_linter_that_cannot_be_fetched_is_fetched_the_next_time(self):
        ruff = self.everything_is_installed()
        self.tool("go", "echo go99.0")
        shutil.rmtree(ruff)
        self.tool("python3", "exit 1")
        self.one_error(self.run_script("setup.sh"), ENVIRONMENT, "ruff could not be fetched", "index")
        self.assertFalse(ruff.exists())
        self.tool("python3", 'while [ "$1" != --target ]; do shift; done; mkdir -p "$2/bin"; '
                             'cp "$0" "$2/bin/ruff"')
        self.assertEqual(self.run_script("setup.sh").returncode, DONE, self.said)
        self.calls.write_text("")
        done = self.run_script("setup.sh")
        self.assertEqual((done.returncode, done.stdout), (DONE, ""), self.said)
        self.assertEqual(self.calls_of("python3"), [])

    def test_without_arrow_programs_are_built_and_tests_are_not(self):
        self.everything_is_installed()
        shutil.rmtree(self.arrow)
        self.tool("python3", '[ "$*" = "-m pip --version" ]')
        self.assertEqual(self.run_script("setup.sh", "--check").stdout, f"missing: {self.arrow.name}\n")
        done = self.run_script("setup.sh", "--build")
        self.one_error(done, DONE, "pip could not fetch pyarrow", "package index")
        self.assertIn("Parquet files will be refused", done.stdout)
        self.tool("go", "echo go99.0")
        self.one_error(self.run_script("setup.sh"), ENVIRONMENT, "pip could not fetch pyarrow")
        self.assertFalse(self.arrow.exists())

    def test_a_go_that_cannot_be_installed(self):
        self.everything_is_installed()
        self.tool("apt-get", "exit 100")
        for name in ("bash", "dirname", "sed", "grep", "cat", "id", "sort", "head", "env"):
            (self.tools / name).symlink_to(shutil.which(name))
        done = self.run_script("setup.sh", path=str(self.tools))
        self.one_error(done, ENVIRONMENT, "package lists")
