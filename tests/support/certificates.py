# SPDX-License-Identifier: Apache-2.0
"""Certificates and kubeconfigs of a test's own certificate authority, made with openssl."""
import json
import pathlib
import subprocess


class Authority:
    """A certificate authority in a folder: ca.crt and ca.key, and a pair for each leaf. One that is
    there already is gone on with."""

    def __init__(self, folder, days=2):
        self.folder = pathlib.Path(folder)
        self.days = str(days)
        self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if (self.folder / "ca.crt").exists():
            return
        self._request("ca", "/CN=test-ca", ["basicConstraints=critical,CA:TRUE",
                                            "keyUsage=keyCertSign,cRLSign"])

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def leaf(self, name, subject, names=""):
        """NAME.crt and NAME.key for `subject` ("/O=group/CN=user"), valid for `names` ("DNS:…")."""
        extensions = ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature,keyEncipherment",
                      "extendedKeyUsage=serverAuth,clientAuth"]
        if names:
            extensions.append(f"subjectAltName={names}")
        self._request(name, subject, extensions, "-CA", "ca.crt", "-CAkey", "ca.key")

    def _request(self, name, subject, extensions, *signer):
        """A new pair, signed by itself or by `signer`, in one call: there are many to make."""
        settings = self.folder / f"{name}.cnf"
        settings.write_text("\n".join(["[req]", "distinguished_name=none", "x509_extensions=own",
                                       "[none]", "[own]", *extensions]) + "\n")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key", "-subj",
                     subject, "-days", self.days, "-out", f"{name}.crt", "-config",
                     settings.name, *signer)

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
