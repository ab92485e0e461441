"""PyTorch's operations on the tape, each with what its derivative saves and allocates.

What is saved: torch, tools/autograd/derivatives.yaml. What CUDA kernels allocate inside: aten/src/ATen/native, as
named.
"""

from collections.abc import Sequence
from typing import Literal

from tonnage.tape.tape import TENSOR, TOKEN, Extent, Gradients, Slot, Tape, Tensor


class Words(Tape):
    """A tape with the operations of eager PyTorch."""

    # ---- parameters ----

    def parameter(self, elements: float, width: float, split: str, heads: int = 0, *, trains: bool = True) -> Tensor:
        """A weight that the model holds; its gradient ends on the account of gradients."""
        slot = Slot(Extent("gradient", split, heads)) if trains else None
        return Tensor(None, elements, width, Extent("parameter", split, heads), slot)

    # ---- element by element ----

    def to(self, x: Tensor, width: float) -> Tensor:
        """Cast to another type; returns the same tensor if it already has it."""
        if x.width == width:
            return x
        out = self.like(x, width)
        before = x.width
        self.note("to", [out], [x], [], lambda g: [self.like(first_gradient(g), before)])
        return out

    def cast(self, parts: Sequence[Tensor], width: float) -> list[Tensor]:
        """Cast tensors that are stored as one."""
        if all(part.width == width for part in parts):
            return list(parts)
        out = [self.like(part, width) for part in parts]
        shapes = [shape_of(part) if part.slot else None for part in parts]

        def derivative(_: Gradients) -> Gradients:
            return [self.new(*shape) if shape else None for shape in shapes]

        self.note("to", out, parts, [], derivative)
        return out

    def mapped(
        self, name: str, x: Tensor, *, saves: Literal["", "input", "output"] = "", temporaries: int = 0
    ) -> Tensor:
        """An elementwise function: what its derivative saves, and how many temporary copies it allocates."""
        out = self.like(x)
        saved = {"": [], "input": [x], "output": [out]}[saves]

        def derivative(gradients: Gradients) -> Gradients:
            held = [self.like(first_gradient(gradients)) for _ in range(temporaries)]
            gradient = self.like(first_gradient(gradients))
            self.mark()
            del held
            return [gradient]

        self.note(name, [out], [x], saved, derivative)
        return out

    def clamped(self, x: Tensor, *, sides: int) -> Tensor:
        """clamp(x): its derivative allocates a mask of one byte a number for each side."""
        out = self.like(x)

        def derivative(gradients: Gradients) -> Gradients:
            masks = [self.like(first_gradient(gradients), 1) for _ in range(sides)]
            gradient = self.like(first_gradient(gradients))
            self.mark()
            del masks
            return [gradient]

        self.note("clamp", [out], [x], [x], derivative)
        return out

    def smaller(self, x: Tensor) -> Tensor:
        """min(x, a number): keeps x; its derivative allocates a mask and a masked gradient for each side."""
        out = self.like(x)

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            mask, gradient = self.like(g, 1), self.like(g)
            self.mark()
            del mask
            return [gradient]

        self.note("min", [out], [x], [x], derivative)
        return out

    def either(self, x: Tensor, y: Tensor) -> Tensor:
        """where(mask, x, y): keeps the mask, one byte a number."""
        out, mask = self.like(x), self.like(x, 1)
        self.note(
            "where", [out], [x, y], [mask], lambda g: [self.like(first_gradient(g)), self.like(first_gradient(g))]
        )
        return out

    def masked_by(self, x: Tensor, mask: Tensor) -> Tensor:
        """x with a constant where the mask is set; the mask is kept."""
        out = self.like(x)

        def derivative(gradients: Gradients) -> Gradients:
            return [self.like(first_gradient(gradients))]

        self.note("where", [out], [x], [mask], derivative)
        return out

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y: the incoming gradient goes to both as it is, but for a cast."""
        out = self.like(_larger(x, y), max(x.width, y.width))
        widths = x.width, y.width
        needs_gradient = x.slot is not None, y.slot is not None

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            return [
                (g.alias() if g.width == w else self.like(g, w)) if a else None
                for w, a in zip(widths, needs_gradient, strict=True)
            ]

        self.note("add", [out], [x, y], [], derivative)
        return out

    def sub(self, x: Tensor, y: Tensor) -> Tensor:
        """x - y: the second gradient is the incoming one negated."""
        out = self.like(_larger(x, y), max(x.width, y.width))
        shapes = shape_of(x), shape_of(y)
        needs_gradient = x.slot is not None, y.slot is not None

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            gradients_out = [g.alias() if needs_gradient[0] else None, self.like(g) if needs_gradient[1] else None]
            self.mark()
            return [self._reduced(gradients_out, i, *shape) for i, shape in enumerate(shapes)]

        self.note("sub", [out], [x, y], [], derivative)
        return out

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y: each factor is saved if the other needs a gradient; the gradient of a smaller factor is summed from a
        full-size product.
        """
        out = self.like(_larger(x, y), max(x.width, y.width))
        shapes = shape_of(x), shape_of(y)
        needs_gradient = x.slot is not None, y.slot is not None

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            wholes = [self.like(g) if a else None for a in needs_gradient]  # all of them before any is summed or cast
            self.mark()
            return [self._reduced(wholes, i, *shape) for i, shape in enumerate(shapes)]

        self.note(
            "mul", [out], [x, y], [y if needs_gradient[0] else None, x if needs_gradient[1] else None], derivative
        )
        return out

    def _reduced(
        self, wholes: list[Tensor | None], at: int, elements: float, width: float, extent: Extent
    ) -> Tensor | None:
        """Take a gradient from the list: sum it to the shape of its factor, then cast it."""
        gradient, wholes[at] = wholes[at], None
        if gradient is None:
            return None
        if (elements, extent) != (gradient.elements, gradient.extent):
            summed = self.new(elements, gradient.width, extent)
            self.mark()
            gradient = summed
            del summed
        if gradient.width != width:
            cast = self.like(gradient, width)
            self.mark()
            gradient = cast
        return gradient

    def square(self, x: Tensor) -> Tensor:
        """pow(x, 2): its derivative takes a power, scales it and multiplies."""
        return self.mapped("pow", x, saves="input", temporaries=2)

    def mean(self, x: Tensor, elements: float) -> Tensor:
        """The mean over features, `elements` of them a token; its gradient is expanded."""
        out = self.new(elements, x.width, x.extent)
        shape = shape_of(x)
        self.note("mean", [out], [x], [], lambda _: [self.new(*shape)])
        return out

    def largest(self, x: Tensor, elements: float) -> Tensor:
        """The maximum of each row, which keeps its index; its gradient is scattered into zeros."""
        out, where = self.new(elements, x.width, TENSOR), self.new(elements, 8, TENSOR)
        like = shape_of(x)
        self.note("max", [out], [x], [where], lambda _: [self._into_zeros(*like)])
        return out

    def _into_zeros(self, elements: float, width: float, extent: Extent) -> Tensor:
        zeros, gradient = self.new(elements, width, extent), self.new(elements, width, extent)
        self.mark()
        del zeros
        return gradient

    def softmax(self, x: Tensor, width: float | None = None) -> Tensor:
        """Softmax, which keeps its result, of `width` bytes a number. Its backward first multiplies gradient and result
        (cuda/SoftMax.cu: softmax_backward_cuda_out).
        """
        out = self.like(x, width)
        like = shape_of(x)

        def derivative(gradients: Gradients) -> Gradients:
            product = self.like(first_gradient(gradients))
            gradient = self.new(*like)
            self.mark()
            del product
            return [gradient]

        self.note("softmax", [out], [x], [out], derivative)
        return out

    def dropout(self, x: Tensor) -> Tensor:
        """Dropout, which keeps a mask of one byte a number."""
        out, mask = self.like(x), self.like(x, 1)
        self.note("dropout", [out], [x], [mask], lambda g: [self.like(first_gradient(g))])
        return out

    # ---- views and copies ----

    def parts(self, x: Tensor, sizes: Sequence[float], *, as_split: bool = True) -> list[Tensor]:
        """Views of parts. `as_split`: as torch.split, with one gradient; else as slices, each with zeros of full
        size.
        """
        views = [x.alias(elements=size) for size in sizes]
        if as_split:
            like = shape_of(x)
            self.note("split", views, [x], [], lambda _: [self.new(*like)])
            return views
        like = shape_of(x)
        for view in views:
            self.note("slice", [view], [x], [], lambda _: [self.new(*like)])
        return views

    def cat(self, parts: Sequence[Tensor]) -> Tensor:
        """Concatenate into a new tensor; its gradient goes back in views."""
        out = self.new(sum(part.elements for part in parts), max(part.width for part in parts), parts[0].extent)
        sizes = [part.elements for part in parts]
        self.note(
            "cat", [out], parts, [], lambda g: [first_gradient(g).alias(elements=size, is_view=True) for size in sizes]
        )
        return out

    def copy(self, x: Tensor, elements: float | None = None, extent: Extent | None = None) -> Tensor:
        """contiguous(), or expand and reshape to `elements`: a copy, whose gradient is summed where it was expanded."""
        out = self.new(x.elements if elements is None else elements, x.width, extent or x.extent)
        like = shape_of(x)
        expanded = out.elements != x.elements
        self.note(
            "copy", [out], [x], [], lambda g: [self.new(*like) if expanded else first_gradient(g).alias(is_view=True)]
        )
        return out

    def expanded(self, x: Tensor, elements: float) -> Tensor:
        """An expanded view: its gradient is summed."""
        out = x.alias(elements=elements)
        like = shape_of(x)
        self.note("expand", [out], [x], [], lambda _: [self.new(*like)])
        return out

    def filled(self, parts: Sequence[Tensor]) -> Tensor:
        """An empty tensor into which parts are copied one after the other: each copy's derivative copies the full
        gradient.
        """
        out = self.new(sum(part.elements for part in parts), parts[0].width, parts[0].extent)
        for part in parts:
            out = self._filled(out, part)
        return out

    def _filled(self, base: Tensor, part: Tensor) -> Tensor:
        out, like, needs_gradient = base.alias(), shape_of(part), base.slot is not None

        def derivative(gradients: Gradients) -> Gradients:
            rest, of_part = self.like(first_gradient(gradients)), self.new(*like)
            zeros = self.new(*like) if needs_gradient else None
            self.mark()
            del zeros
            return [rest if needs_gradient else None, of_part]

        self.note("copy", [out], [base, part], [], derivative)
        return out

    def reordered(self, x: Tensor) -> Tensor:
        """A view whose gradient arrives in another order and is copied."""
        out = x.alias()
        self.note("view", [out], [x], [], lambda g: [self.like(first_gradient(g))])
        return out

    def padded(self, x: Tensor, elements: float) -> Tensor:
        """Pad with zeros, in a copy; a view cuts the gradient of the zeros off."""
        out = self.new(elements, x.width, x.extent)
        size = x.elements
        self.note("pad", [out], [x], [], lambda g: [first_gradient(g).alias(elements=size, is_view=True)])
        return out

    def gathered(self, x: Tensor, elements: float, extent: Extent, index: float) -> Tensor:
        """Rows or numbers at an index, of which `index` bytes a token are kept; the gradient is scattered into
        zeros.
        """
        out, indices = self.new(elements, x.width, extent), self.new(index, 1, extent)
        like = shape_of(x)

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            values = self.like(g) if g.storage is not None and g.storage.bytes < g.elements * g.width else None
            gradient = self._into_zeros(*like)
            del values
            return [gradient]

        self.note("index", [out], [x], [indices], derivative)
        return out

    def summed(self, x: Tensor, elements: float, extent: Extent) -> Tensor:
        """A sum over copies: its gradient is an expanded view of the incoming one."""
        out = self.new(elements, x.width, extent)
        size, width, cut = shape_of(x)
        self.note("sum", [out], [x], [], lambda g: [Tensor(first_gradient(g).storage, size, width, cut, None, True)])
        return out

    # ---- products ----

    def product(
        self,
        x: Tensor,
        weights: Sequence[Tensor],
        elements: float,
        extent: Extent = TOKEN,
        biases: Sequence[Tensor] = (),
    ) -> Tensor:
        """x times weights that are stored as one: saves what the other's gradient needs."""
        out = self.new(elements, x.width, extent)
        shape, needs_gradient, trains = shape_of(x), x.slot is not None, any(weight.slot for weight in weights)
        parameters = [shape_of(operand) if operand.slot else None for operand in (*weights, *biases)]

        def derivative(_: Gradients) -> Gradients:
            gradients_out: list[Tensor | None] = [self.new(*operand) if operand else None for operand in parameters]
            of_input = self.new(*shape) if needs_gradient else None
            if of_input is not None:
                of_input.is_view = True
            return [of_input, *gradients_out]

        saved = [x if trains else None, *(weights if needs_gradient else ())]
        self.note("mm", [out], [x, *weights, *biases], saved, derivative)
        return out

    def pairs(self, x: Tensor, y: Tensor, elements: float, extent: Extent) -> Tensor:
        """A batched product of two activations."""
        out = self.new(elements, x.width, extent)
        shapes = shape_of(x), shape_of(y)
        needs_gradient = x.slot is not None, y.slot is not None

        def derivative(_: Gradients) -> Gradients:
            return [self.new(*shape) if a else None for shape, a in zip(shapes, needs_gradient, strict=True)]

        self.note(
            "bmm", [out], [x, y], [y if needs_gradient[0] else None, x if needs_gradient[1] else None], derivative
        )
        return out

    def layer_norm(
        self, x: Tensor, weights: Sequence[Tensor], *, statistics: float = 1, centred: bool = True
    ) -> Tensor:
        """native_layer_norm: keeps its input, mean and root in fp32; one call computes all gradients.

        `centred`: False: RMSNorm, which has no mean."""
        out = self.like(x)
        root = self.new(statistics, 4, x.extent)
        mean = self.new(statistics, 4, x.extent) if centred else None
        shapes = [shape_of(weight) if weight.slot else None for weight in weights]

        def derivative(gradients: Gradients) -> Gradients:
            gradients_out: list[Tensor | None] = [self.like(first_gradient(gradients))]
            return [*gradients_out, *(self.new(*shape) if shape else None for shape in shapes)]

        self.note("layer_norm", [out], [x, *weights], [x, mean, root], derivative)
        return out

    def log_softmax(self, x: Tensor) -> Tensor:
        """log_softmax, which keeps its result."""
        return self.mapped("log_softmax", x, saves="output")

    def chosen(self, x: Tensor) -> Tensor:
        """nll_loss: one number of each row; its gradient has the size of its input."""
        out = self.new(0, 4, x.extent)
        like = shape_of(x)
        self.note("nll_loss", [out], [x], [], lambda _: [self.new(*like)])
        return out

    def in_place(self, x: Tensor) -> Tensor:
        """A loss that keeps its input and overwrites it with the gradient."""
        out = self.new(0, 4, x.extent)
        storage, elements, width, extent = x.storage, x.elements, x.width, x.extent
        self.note("loss", [out], [x], [x], lambda _: [Tensor(storage, elements, width, extent, None, True)])
        return out


def first_gradient(gradients: Gradients) -> Tensor:
    gradient = gradients[0]
    assert gradient is not None
    return gradient


def shape_of(x: Tensor) -> tuple[float, float, Extent]:
    return x.elements, x.width, x.extent


def _larger(x: Tensor, y: Tensor) -> Tensor:
    """The operand that has the shape of the result."""
    return max(x, y, key=lambda operand: (_ORDER.index(operand.extent.unit), operand.elements))


_ORDER = ("gradient", "parameter", "token", "row", "pair")
