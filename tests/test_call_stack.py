"""The call stack: recursion that outgrows the usual one is done again on a larger one, and ends there if it must."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

import pytest

from torchrepro_lint.call_stack import has_deep_stack, on_deep_stack, raise_in_thread, with_deep_stack
from torchrepro_lint.engine.limits import DeadlineExceededError, deadline, guarded_analysis
from torchrepro_lint.source.errors import Fault


def _sum(count: int) -> int:
    """The sum of the numbers up to ``count``; each takes a call of Python and one of C, as a query does."""
    return count + sum(_sum(each) for each in [count - 1]) if count else 0


def test_what_the_usual_stack_holds_stays_there() -> None:
    seen: list[tuple[bool, threading.Thread]] = []
    assert with_deep_stack(lambda: seen.append((has_deep_stack(), threading.current_thread()))) is None
    assert seen == [(False, threading.current_thread())]


def test_deep_recursion_is_done_again_on_the_large_stack() -> None:
    limit, tried = sys.getrecursionlimit(), list[bool]()

    def work() -> int:
        tried.append(has_deep_stack())
        return _sum(4000)

    assert with_deep_stack(work) == 4000 * 4001 // 2
    assert tried == [False, True]
    assert sys.getrecursionlimit() == limit
    assert not has_deep_stack()


def test_work_on_the_large_stack_takes_no_other_one() -> None:
    def work() -> threading.Thread:
        return with_deep_stack(lambda: on_deep_stack(threading.current_thread)), threading.current_thread()

    inner, outer = on_deep_stack(work)
    assert inner is outer is not threading.current_thread()


def test_recursion_without_end_is_a_fault() -> None:
    def for_ever(number: int) -> int:
        return for_ever(number + 1)

    limit = sys.getrecursionlimit()
    found = guarded_analysis(lambda: for_ever(0))
    assert isinstance(found, Fault)
    assert found.recursion
    assert sys.getrecursionlimit() == limit


def test_other_exceptions_arrive_with_their_place() -> None:
    def work() -> float:
        return _sum(4000) / 0

    found = guarded_analysis(work)
    assert isinstance(found, Fault)
    assert (
        found.message == f"ZeroDivisionError: division by zero (test_call_stack.py:{work.__code__.co_firstlineno + 1})"
    )


def test_without_memory_for_the_stack_it_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    limit = sys.getrecursionlimit()
    monkeypatch.setattr(threading.Thread, "start", refuses)
    found = guarded_analysis(lambda: _sum(4000))
    assert isinstance(found, Fault)
    assert found.recursion
    assert sys.getrecursionlimit() == limit


def _alarm(_thread: int) -> None:
    signal.raise_signal(signal.SIGVTALRM)


def _raise_there(thread: int) -> None:
    raise_in_thread(thread, DeadlineExceededError)


def _in_main_thread(work: Callable[[], None]) -> None:
    work()


def _in_other_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such alarm")
@pytest.mark.parametrize(("run", "expire"), [(_in_main_thread, _alarm), (_in_other_thread, _raise_there)])
def test_a_deadline_ends_work_on_the_large_stack(
    run: Callable[[Callable[[], None]], None], expire: Callable[[int], None]
) -> None:
    """It expires once the work has begun there: as the signal in the main thread, as what the watchdog raises in another one."""
    before, limit, ended = threading.enumerate(), sys.getrecursionlimit(), list[str]()

    def endless(waiting: int) -> None:
        _sum(4000)
        try:
            expire(waiting)
            while True:
                pass
        finally:
            ended.append("work")

    def late() -> None:
        waiting = threading.get_ident()
        try:
            with deadline():
                with_deep_stack(lambda: endless(waiting))
        except DeadlineExceededError:
            ended.append("deadline")

    run(late)
    assert ended == ["work", "deadline"]
    assert sys.getrecursionlimit() == limit
    assert all(each in before for each in threading.enumerate() if not each.daemon)


@pytest.mark.parametrize("is_late", [False, True])
def test_an_interrupt_while_the_large_stack_is_made_ends_the_work(
    monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """It comes before the thread has begun, which then does nothing, or once it has."""
    limit, start, begun, ended = sys.getrecursionlimit(), threading.Thread.start, threading.Event(), list[str]()

    def interrupted(thread: threading.Thread) -> None:
        if is_late:
            start(thread)
            begun.wait()
        raise KeyboardInterrupt

    def endless() -> None:
        try:
            begun.set()
            while True:
                pass
        finally:
            ended.append("work")

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        on_deep_stack(endless)
    assert ended == ["work"] * is_late
    assert sys.getrecursionlimit() == limit
