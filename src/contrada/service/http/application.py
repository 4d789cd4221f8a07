"""The ASGI application: hot paths are dispatched here, everything else goes to the control plane."""

from __future__ import annotations

from contrada.service.http.context import Context
from contrada.service.http.control import ControlPlane
from contrada.service.http.faults import problem_from
from contrada.service.http.publishing import MessagePublisher
from contrada.service.http.routes import TABLE
from contrada.service.http.sockets import Sockets
from contrada.service.http.streams import Streams
from contrada.service.http.wire import Disconnected, Receive, Scope, Send, segments_of, send_problem
from contrada.service.links.answering import PATH as LINK
from contrada.service.links.answering import LinkSockets
from contrada.service.map.stream import MapStream


class Application:
    """An ASGI application over a context.

    `POST /messages` and `GET /subscribers/{name}/events` carry nearly all traffic and pass no framework.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._publish = MessagePublisher(context)
        self._streams = Streams(context)
        self._map = MapStream(context)
        self._sockets = Sockets(context, self._publish)
        self._links = LinkSockets(context)
        self._control = ControlPlane(context, TABLE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or serve a WebSocket."""
        if scope["type"] == "websocket":
            await (self._links if scope["path"] == LINK else self._sockets)(scope, receive, send)
            return
        try:
            path, method = scope["path"], scope["method"]
            if path == "/messages" and method == "POST":
                await self._publish(scope, receive, send)
            elif method == "GET" and path == "/map/events":
                await self._map(scope, receive, send)
            elif method == "GET" and path.endswith("/events") and len(parts := segments_of(scope)) == 3:
                if parts[0] != "subscribers" or parts[2] != "events":
                    await self._control(scope, receive, send)
                else:
                    await self._streams(scope, receive, send, parts[1])
            else:
                await self._control(scope, receive, send)
        except Disconnected:
            pass
        except Exception as error:
            # No name in this frame may hold the error, whose traceback holds the frame, and with it the body: the body
            # would stay until the next collection of garbage, which is rare.
            await self._refuse(error, send)

    async def _refuse(self, error: Exception, send: Send) -> None:
        problem = problem_from(error)
        self.context.metrics.failures += problem.status >= 500
        await send_problem(send, problem)
