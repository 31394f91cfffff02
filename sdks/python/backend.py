"""Builds the wheel and the sdist with the standard library alone, so that the package installs where pip has no network."""
import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

root = pathlib.Path(__file__).parent
project = (root / "pyproject.toml").read_text()
version = re.search(r'^version = "(.+)"$', project, re.M)[1]
summary = re.search(r'^description = "(.+)"$', project, re.M)[1]
name = f"rivulet-{version}"
# Archives of the same files are the same.
moment = (2020, 1, 1, 0, 0, 0)
metadata = f"""Metadata-Version: 2.1
Name: rivulet
Version: {version}
Summary: {summary}
License: MIT
Requires-Python: >=3.10
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{(root / "README.md").read_text()}"""


def modules():
    return sorted(path for path in (root / "src" / "rivulet").rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def build_wheel(folder, config_settings=None, metadata_directory=None):
    files = {path.relative_to(root / "src").as_posix(): path.read_bytes() for path in modules()}
    about = f"{name}.dist-info"
    files[f"{about}/METADATA"] = metadata.encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: rivulet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{about}/RECORD"] = ("\n".join([*rows, f"{about}/RECORD,,"]) + "\n").encode()
    file = f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / file, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(zipfile.ZipInfo(path, moment), content, zipfile.ZIP_DEFLATED)
    return file


def build_sdist(folder, config_settings=None):
    file = f"{name}.tar.gz"
    with tarfile.open(pathlib.Path(folder) / file, "w:gz") as archive:
        for path in [root / "pyproject.toml", root / "README.md", root / "backend.py", *modules()]:
            add(archive, path.relative_to(root).as_posix(), path.read_bytes())
        add(archive, "PKG-INFO", metadata.encode())
    return file


def add(archive, path, content):
    about = tarfile.TarInfo(f"{name}/{path}")
    about.size = len(content)
    archive.addfile(about, io.BytesIO(content))


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
