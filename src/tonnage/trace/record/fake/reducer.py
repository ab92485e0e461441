"""DistributedDataParallel's reducer, which is C++ that reads data, in Python on fake tensors, with the same buckets.

After torch/csrc/distributed/c10d/reducer.cpp. The first iteration has one bucket for all gradients; at the second
forward buckets are rebuilt in the order in which gradients arrived. Gradients are copied into buckets and back, or
become views of them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from tonnage.trace.events import Category
from tonnage.trace.record.fake.buckets import Bucket, leaves, same_storage, views_of
from tonnage.trace.record.fake.patch import patch

Tensor = torch.Tensor
Sort = Callable[[Iterator[Tensor], Category], None]


class Reducer:
    """Replaces torch.distributed.Reducer, with its order of arguments. `sort` receives the buckets' tensors and
    category.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        bucket_indices: list[list[int]],
        per_bucket_size_limits: Sequence[int],
        process_group: Any,
        expect_sparse_gradient: Sequence[bool] = (),
        bucket_bytes_cap: int = 25 * 2**20,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        param_to_name_mapping: Any = None,
        first_bucket_bytes_cap: int = 2**20,
        *_: Any,
        sort: Sort | None = None,
        **__: Any,
    ):
        self.parameters, self.group = list(parameters), process_group
        self.sort = sort
        self.limits = [first_bucket_bytes_cap, bucket_bytes_cap]
        self.find_unused, self.as_views = find_unused_parameters, gradient_as_bucket_view
        self.static = self.rebuilt = self.expecting = self.unfinished = False
        self.hook: tuple[Any, Callable[..., Any]] | None = None
        self.bucket_dtype: torch.dtype | None = None
        self.order: list[int] = []  # in which gradients arrive, until buckets are rebuilt
        self.unused: list[int] = []
        self.ready: set[int] = set()
        self.triggered = [0] * len(self.parameters)
        self.left: list[int] = []
        self.iterations = self.next_bucket = 0
        self.buckets: list[Bucket] = []
        self._make_buckets(bucket_indices)
        self._handles = [self._watch(index, parameter) for index, parameter in enumerate(self.parameters)]
        self.used = self._used_map() if find_unused_parameters else None

    def _watch(self, index: int, parameter: Tensor) -> Any:
        return parameter.register_post_accumulate_grad_hook(lambda _: self._autograd_hook(index))

    def _used_map(self) -> Tensor:
        return torch.empty(len(self.parameters), dtype=torch.int32, device=self.parameters[0].device)

    @torch.no_grad()
    def _make_buckets(self, assignment: Sequence[Sequence[int]]) -> None:
        self.buckets.clear()
        self.where: dict[int, tuple[int, int]] = {}
        for at, indices in enumerate(assignment):
            bucket = Bucket(at, indices, [self.parameters[i] for i in indices], self.bucket_dtype)
            self.buckets.append(bucket)
            if self.sort is not None:
                self.sort(iter([bucket.contents]), "gradient" if self.as_views else "buffer")
            self.where.update({index: (at, inner) for inner, index in enumerate(indices)})
            if self.as_views:
                for index, view in zip(indices, bucket.views, strict=True):
                    gradient = self.parameters[index].grad
                    if gradient is not None and not same_storage(gradient, view):
                        view.copy_(gradient)
                        self.parameters[index].grad = view
        if self.buckets:
            self.buckets[-1].last = True

    def prepare_for_forward(self) -> None:
        self.iterations += 1

    @torch.no_grad()
    def _rebuild_buckets(self) -> bool:
        if self.unfinished:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. "
                "This error indicates that your module has parameters that were not used in producing loss."
            )
        if not self._may_rebuild() or not self.order:
            return False
        came = [self.parameters[index] for index in self.order]
        assignment, _ = dist._compute_bucket_assignment_by_size(came, self.limits, [], self.order)
        device = self.parameters[0].device
        # The assignment is broadcast from rank 0: numbers of parameters and the number of buckets, then the buckets'
        # sizes.
        broadcasts = [
            torch.empty(len(self.order) + 1, dtype=torch.int32, device=device),
            torch.empty(len(assignment), dtype=torch.int32, device=device),
        ]
        for sizes in broadcasts:
            dist.broadcast(sizes, 0, group=self.group)
        self.rebuilt = True
        self.order.clear()
        del broadcasts, sizes
        self._make_buckets(assignment)
        return True

    def _may_rebuild(self) -> bool:
        return (self.static or not self.find_unused) and not self.rebuilt

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        self.expecting, self.next_bucket = True, 0
        self.ready.clear()
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
        self.left = list(self.triggered)
        if self.find_unused and not self.static:
            seen = set(leaves(outputs))
            self.unused = [index for index, parameter in enumerate(self.parameters) if id(parameter) not in seen]

    def _autograd_hook(self, index: int) -> None:
        if not self.expecting:
            return
        if self.static and self.iterations == 1:
            self.triggered[index] += 1
            return
        if self.find_unused and not self.static:
            unused, self.unused = self.unused, []
            for unused_index in unused:
                self._mark_ready(unused_index)
        if self.static:
            self.left[index] -= 1
            if self.left[index] > 0:
                return
        if self._may_rebuild():
            self.order.append(index)
        self._mark_ready(index)

    def _mark_ready(self, index: int) -> None:
        if index in self.ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. Parameter at index {index} has been marked as "
                "ready twice."
            )
        self.ready.add(index)
        self.unfinished = True
        at, inner = self.where[index]
        self._copy_in(self.buckets[at], index, inner)
        self.buckets[at].pending -= 1
        while self.next_bucket < len(self.buckets) and self.buckets[self.next_bucket].pending == 0:
            self._reduce(self.buckets[self.next_bucket])
            self.next_bucket += 1
        if self.next_bucket == len(self.buckets):
            torch.autograd.Variable._execution_engine.queue_callback(self._finalize)

    @torch.no_grad()
    def _copy_in(self, bucket: Bucket, index: int, inner: int) -> None:
        parameter, view = self.parameters[index], bucket.views[inner]
        if parameter.grad is None:
            view.zero_()
            return
        share = 1.0 if self.hook is not None else 1.0 / self.group.size()
        if same_storage(parameter.grad, view):
            view.mul_(share)
            return
        if self.hook is None and parameter.grad.dtype == view.dtype:
            torch.mul(parameter.grad, share, out=view)
        else:
            view.copy_(parameter.grad)
        if self.as_views:
            parameter.grad = view

    @torch.no_grad()
    def _reduce(self, bucket: Bucket) -> None:
        if self.hook is None:
            dist.all_reduce(bucket.contents, group=self.group)
            return
        state, hook = self.hook
        with ExitStack() as stack:
            patch(stack, dist, "all_reduce", _all_reduce(dist.all_reduce))
            bucket.future = hook(state, bucket)

    @torch.no_grad()
    def _finalize(self) -> None:
        if not self.expecting:
            return
        self.expecting = self.unfinished = False
        for bucket in self.buckets:
            out = bucket.views if bucket.future is None else list(views_of(_value(bucket.future), bucket.parameters()))
            bucket.future = None
            for index, inner, reduced in zip(bucket.indices, bucket.views, out, strict=True):
                self._copy_out(self.parameters[index], inner, reduced)

    def _copy_out(self, parameter: Tensor, inner: Tensor, reduced: Tensor) -> None:
        if not self.as_views:
            if parameter.grad is None:
                parameter.grad = reduced.clone()
            else:
                parameter.grad.copy_(reduced)
            return
        if not same_storage(inner, reduced):
            inner.copy_(reduced)
        if parameter.grad is None:
            parameter.grad = inner

    def _delay_all_reduce(self) -> None:
        """A static graph's first iteration: reduce everything at its end."""
        for index in range(len(self.parameters)):
            self.ready.add(index)
            at, inner = self.where[index]
            self._copy_in(self.buckets[at], index, inner)
        for bucket in self.buckets:
            self._reduce(bucket)
        self._finalize()

    def _set_static_graph(self) -> None:
        self.static = True
        self.used = self._used_map()

    def _push_all_rebuilt_params(self) -> None:
        if self._may_rebuild() and not self.order:
            self.order = list(range(len(self.parameters)))

    def _set_mixed_precision_param_dtype(self, dtype: torch.dtype) -> None:
        self.bucket_dtype = dtype
        self._make_buckets([bucket.indices for bucket in self.buckets])

    def _remove_autograd_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __getattr__(self, name: str) -> Any:
        """Ignore logging, statistics and joins of uneven inputs, none of which holds memory."""
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _all_reduce(original: Callable[..., Any]) -> Callable[..., Any]:
    """An all-reduce whose future holds the tensor, as DDP's hooks expect; the fake group's futures hold nothing."""

    def all_reduce(tensor: Tensor, *positional: Any, **named: Any) -> Any:
        work = original(tensor, *positional, **named)
        return None if work is None else _Done(tensor)

    return all_reduce


class _Done:
    """Completed work."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def wait(self) -> bool:
        return True

    def get_future(self) -> Any:
        future: Any = torch.futures.Future()
        future.set_result([self.tensor])
        return future


class Logger:
    """Replaces torch.distributed.Logger, and logs nothing."""

    def __init__(self, reducer: Reducer): ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def replacements(sort: Sort) -> dict[str, Any]:
    """The replacements for torch.distributed's functions, by name."""
    return {
        "Reducer": partial(Reducer, sort=sort),
        "Logger": Logger,
        "_verify_params_across_processes": _verify,
        "_register_comm_hook": _register,
        "_register_builtin_comm_hook": lambda reducer, kind: None,
    }


def _verify(group: Any, parameters: Sequence[Tensor], logger: Any = None) -> None:
    """Check that all ranks have as many parameters, and shapes and strides as rank 0."""
    device = parameters[0].device
    counts = [torch.empty(1, dtype=torch.int64, device=device) for _ in range(group.size() + 1)]
    shapes = torch.empty(2 * sum(parameter.dim() for parameter in parameters), dtype=torch.int64, device=device)
    dist.broadcast(shapes, 0, group=group)
    del counts


def _register(reducer: Reducer, state: Any, hook: Callable[..., Any]) -> None:
    reducer.hook = (state, hook)


def _nothing(*_: Any, **__: Any) -> None: ...


def _value(future: Any) -> Tensor:
    value = future.wait() if hasattr(future, "wait") else future
    result: Tensor = value[0] if isinstance(value, list | tuple) else value
    return result
