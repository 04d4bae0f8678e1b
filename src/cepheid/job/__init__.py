"""The main job: a YAML file says where events come from, which patterns are looked for, and where matches go."""

from importlib.util import find_spec

if find_spec("yaml") is None or find_spec("pydantic") is None:
    raise ModuleNotFoundError(
        "Jobs need PyYAML and pydantic, which are not both installed. Install them with: pip install '.[spark]', in a "
        "clone of Cepheid",
        name="yaml",
    )

from cepheid.job.description import Job
from cepheid.job.outcome import Outcome
from cepheid.job.problems import FieldProblem, JobError
from cepheid.job.reading import parse_job, read_job
from cepheid.job.run import RunError, run_job

__all__ = ["FieldProblem", "Job", "JobError", "Outcome", "RunError", "parse_job", "read_job", "run_job"]
