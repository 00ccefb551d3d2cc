# SPDX-License-Identifier: Apache-2.0
"""Certificates and kubeconfigs of a test's own certificate authority, made with openssl."""
import json
import pathlib
import subprocess


class Authority:
    """A certificate authority in a new folder: ca.crt and ca.key, and a pair for each leaf."""

    def __init__(self, folder, days=2):
        self.folder = pathlib.Path(folder)
        self.days = str(days)
        self.folder.mkdir(parents=True, mode=0o700)
        self.openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", "ca.key")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-days", self.days, "-subj",
                     "/CN=test-ca", "-out", "ca.crt")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def leaf(self, name, subject, names=""):
        """NAME.crt and NAME.key for `subject` ("/O=group/CN=user"), valid for `names` ("DNS:…")."""
        self.openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        extensions = ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature,keyEncipherment",
                      "extendedKeyUsage=serverAuth,clientAuth"]
        if names:
            extensions.append(f"subjectAltName={names}")
        (self.folder / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", self.days, "-extfile", f"{name}.ext", "-out",
                     f"{name}.crt")

    def service_account_keys(self):
        """sa.key, which signs the tokens of service accounts, and sa.pub, which verifies them."""
        self.openssl("genrsa", "-out", "sa.key", "2048")
        self.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")


def write_kubeconfig(path, server, folder, leaf):
    """A kubeconfig at `path` that names the files of `leaf` in the authority's `folder`."""
    folder = pathlib.Path(folder)
    pathlib.Path(path).write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": server, "certificate-authority": str(folder / "ca.crt")}}],
        "users": [{"name": "test", "user": {
            "client-certificate": str(folder / f"{leaf}.crt"),
            "client-key": str(folder / f"{leaf}.key")}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
    return str(path)
