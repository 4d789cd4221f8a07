"""Logs: lines for people, or one JSON object per line."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

from contrada.service.settings import TelemetrySettings

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogLines(logging.Formatter):
    """Formats a record as a JSON object with time, level, logger, message and, of an exception, its trace."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().encode("utf-8", "replace").decode(),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def configure_logs(settings: TelemetrySettings) -> None:
    """Write logs of the service and of uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines() if settings.log_format == "json" else logging.Formatter(TEXT))
    for name in ("contrada", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("contrada").setLevel(settings.log_level.upper())
    logging.getLogger("uvicorn").setLevel("WARNING")  # it repeats what the service says
    logging.getLogger("aiokafka").setLevel("CRITICAL")  # a fault makes hundreds of lines; whoever meets it says one
