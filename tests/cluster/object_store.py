# SPDX-License-Identifier: Apache-2.0
"""MinIO beside the nodes, reached by pods and by tests at the same address."""
import network
import settings
from processes import Part, http_probe
from settings import program


def part(config):
    folder = config.run / "objects"
    folder.mkdir(exist_ok=True)
    return Part("minio", network.LAB,
                [program("minio"), "server", "--quiet", "--address", settings.S3_ADDRESS, folder],
                http_probe(settings.S3_ADDRESS, "/minio/health/ready"),
                settings.versions()["minio"].split("-")[1][:8],
                # MINIO_CI_CD: takes a folder of the disk that the system is on, too.
                {"MINIO_ROOT_USER": settings.S3_USER, "MINIO_ROOT_PASSWORD": settings.S3_PASSWORD,
                 "MINIO_BROWSER": "off", "MINIO_UPDATE": "off", "MINIO_CI_CD": "1"})
