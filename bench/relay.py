"""A relay of our own between an agent and its broker: TCP, each way held up by a time of its own, which may be changed while it runs.

Here there is no netem; what this delays is what a path of unlike ways would. Nothing overtakes, as in TCP."""

import asyncio
import random
import threading


class Relay:
    """Listens on the loopback. `there` and `back` are the least of each way in seconds, `jitter` is the mean of what comes on top."""

    def __init__(self, to, seed):
        self.to, self.random = to, random.Random(seed)
        self.there = self.back = self.jitter = 0.0
        self.ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.ready.wait(10)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        host, port = self.to.rsplit(":", 1)
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return writer.close()
        await asyncio.gather(self._way(reader, far_writer, lambda: self.there), self._way(far_reader, writer, lambda: self.back))

    async def _way(self, reader, writer, least):
        held = asyncio.Queue(maxsize=1024)

        async def let_go():
            while (item := await held.get()) is not None:
                at, data = item
                await asyncio.sleep(max(0.0, at - self.loop.time()))
                writer.write(data)
                await writer.drain()
            writer.close()

        going = asyncio.ensure_future(let_go())
        last = 0.0
        try:
            while data := await reader.read(65536):
                more = self.random.expovariate(1 / self.jitter) if self.jitter > 0 else 0.0
                last = max(last, self.loop.time() + least() + more)
                await held.put((last, data))
        except OSError:
            pass
        await held.put(None)
        try:
            await going
        except OSError:
            pass

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
