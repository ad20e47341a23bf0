"""The application that the worker of docker-compose.yml runs."""

from __future__ import annotations

from tidelog import App, JobContext, Retry

app = App()


@app.job("send-invoice", queue="billing", retry=Retry(max_attempts=5, delays=[1, 5, 30]), timeout=30)
async def send_invoice(ctx: JobContext, order_id: str) -> dict[str, str | int]:
    """Pretend to send an invoice."""
    return {"sent": order_id, "attempt": ctx.attempt}
