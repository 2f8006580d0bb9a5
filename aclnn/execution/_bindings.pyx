"""Bindings: the memory that an executor's operands have, and checks of what is bound to them."""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from aclnn.acl._tensor cimport address_of, aclTensor
from aclnn.acl._tensor_spec cimport operand_t
from aclnn.compiler._request cimport (
    EXACT,
    FEW,
    INHERIT,
    IS_BELOW,
    MANY,
    NUMBER_FORMS,
    facts_of,
    request_t,
)
from aclnn.execution._operand cimport (
    dtype_of,
    fits,
    new_output,
    read_array,
    read_or_refuse,
    spec_of,
    words_of,
)
from aclnn.execution._tensors cimport makes_tensors, read_tensor

from numpy import empty, ndarray, uint8

from aclnn.acl import memory
from aclnn.acl.arguments import did_you_mean, parameter_meant, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
)
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.execution import arrays as interchange
from aclnn.execution._operand import describe, read_headers

cdef enum:
    SPARE_REQUESTS = 8

cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)


cdef class ArrayForm:
    """Facts about the caller of an executor of arrays; immutable, as snapshots share it."""


OF_TENSORS = ArrayForm()


cdef ArrayForm with_numbers(ArrayForm form, bytes numbers):
    """The same facts with other numbers."""
    cdef ArrayForm made = ArrayForm()
    made.kind, made.nest, made.ties, made.form = form.kind, form.nest, form.ties, form.form
    made.description, made.replan, made.words = form.description, form.replan, form.words
    made.roles, made.overwritten, made.takes = form.roles, form.overwritten, form.takes
    made.places = form.places
    made.numbers = numbers
    return made


# Requests of executors that are gone. In the executor itself they would be cleared for each call of
# phase one, which takes longer than to fill them.
cdef request_t *spare_requests[SPARE_REQUESTS]
cdef int n_spare_requests = 0


cdef request_t *new_request(int room) except NULL:
    """A request with room for the descriptions and versions of so many operands, at least `FEW`."""
    global n_spare_requests
    cdef request_t *request
    if room == FEW and n_spare_requests:
        n_spare_requests -= 1
        return spare_requests[n_spare_requests]
    request = <request_t *>malloc(
        sizeof(request_t) + room * (sizeof(operand_t) + sizeof(unsigned int)))
    if request == NULL:
        raise MemoryError
    request.operands = <operand_t *>(request + 1)
    return request


cdef void copy_request(const request_t *request, request_t *copy) noexcept:
    """Copy all but the operands."""
    cdef operand_t *operands = copy.operands
    copy[0] = request[0]
    copy.operands = operands


cdef void give_back(request_t *request) noexcept:
    global n_spare_requests
    if request.n_inputs + request.n_outputs > FEW or n_spare_requests == SPARE_REQUESTS:
        free(request)
        return
    spare_requests[n_spare_requests] = request
    n_spare_requests += 1


cdef bint differ_in_dtype(const operand_t *found, const operand_t *planned) noexcept:
    """Whether an array would fit if it were converted."""
    cdef operand_t converted = found[0]
    converted.dtype = planned.dtype
    return found.dtype != planned.dtype and fits(&converted, planned)


cdef object laid_out_as_planned(const operand_t *planned):
    """A new array with the strides that a plan writes, gaps and backward axes included."""
    spec = spec_of(planned)
    if 0 in spec.shape:
        return empty(spec.shape, spec.dtype)
    cdef Py_ssize_t reach, before = 0, behind = spec.dtype.itemsize
    for size, stride in zip(spec.shape, spec.strides, strict=True):
        reach = (size - 1) * stride
        if reach < 0:
            before -= reach
        else:
            behind += reach
    return ndarray(spec.shape, spec.dtype, empty(before + behind, uint8), before, spec.strides)


@cython.freelist(8)  # each call of phase one makes one, which is soon done with
cdef class Bindings:
    """A planned call, and the memory that its operands have.

    The base class of executors, which add no fields: so they share its list of free objects.
    """

    def __dealloc__(self):
        if self.request != NULL:
            give_back(self.request)

    cdef dict specs(self, int first, int end):
        """Descriptions of operands that are there, by name."""
        cdef int slot
        cdef tuple ties = self.arrays.ties
        found = {}
        for slot in range(first, end):
            tied = ties is not None and slot >= self.request.n_inputs
            if not is_absent(self, slot) and not (
                    tied and ties[slot - self.request.n_inputs] >= 0):
                found[self.names[slot]] = spec_of(&self.request.operands[slot])
        return found

    cdef object word_for(self, object role):
        """The caller's name of an operand or an option."""
        return role if self.arrays.words is None else self.arrays.words.get(role, role)

    cdef int make_room(self, int n_inputs, int n_outputs) except -1:
        """Have a request with room for the descriptions of so many operands."""
        cdef int count = n_inputs + n_outputs
        if count > MANY:
            raise invalid(f"{self.origin}: {count} tensors, at most {MANY} are possible")
        self.request = new_request(max(count, FEW))
        self.request.n_inputs, self.request.n_outputs = n_inputs, n_outputs
        self.request.operator_id = self.request.switches = self.request.n_numbers = 0
        self.request.materialize = self.request.strategy = INHERIT
        self.request.makes_absent, self.request.pair = False, 0
        self.versions = <unsigned int *>(self.request.operands + max(count, FEW))
        return 0

    cdef int copy_to(self, Bindings other) except -1:
        """Bind another executor to the same memory, as it is now."""
        cdef int count = self.request.n_inputs + self.request.n_outputs
        other.planned, other.handle, other.origin = self.planned, self.handle, self.origin
        other.names, other.order, other.bound = self.names, self.order, self.bound
        other.given, other.arrays = self.given, self.arrays
        other.switches, other.scalar_texts = self.switches, self.scalar_texts
        other.make_room(self.request.n_inputs, self.request.n_outputs)
        copy_request(self.request, other.request)
        memcpy(other.request.operands, self.request.operands, count * sizeof(operand_t))
        memcpy(other.versions, self.versions, count * sizeof(unsigned int))
        return 0

    cdef bint is_written(self, int slot):
        """Whether runs write an operand."""
        cdef tuple ties = self.arrays.ties, overwritten = self.arrays.overwritten
        return (slot >= self.request.n_inputs or (ties is not None and slot in ties)
                or (overwritten is not None and slot in overwritten))

    cdef int slot_of(self, object name) except -1:
        if name in self.names:
            return self.names.index(name)
        if self.arrays.roles is not None and name in self.arrays.roles:
            return self.arrays.roles.index(name)
        meant = parameter_meant(name, self.names) if isinstance(name, str) else None
        if meant is not None:
            return self.names.index(meant)
        known = list(self.names)
        if self.arrays.form is not None:
            for role in self.handle.scalar_roles:
                known.append(self.word_for(role))
        raise invalid(f"{self.origin}: no operand is called {shown(name)}, they are "
                      f"{', '.join(dict.fromkeys(self.names))}{did_you_mean(name, known)}")

    cdef dict sort_arguments(self, tuple arrays, dict named, object out):
        """Leave in `named` the inputs to bind; gives the outputs of this run by their slot."""
        cdef int slot, n_inputs = self.request.n_inputs
        cdef dict outs = {}
        if (self.arrays.nest is None and self.arrays.overwritten is None and gives_one(self)
                and not arrays and not named):
            return {n_inputs: out}
        if self.arrays.takes is not None and (named or read_headers(arrays, True) is None):
            outs[NUMBERS_OF_RUN] = self.sorted_by_function(arrays, named)
        elif arrays:
            if len(arrays) > n_inputs:
                raise invalid(f"{self.origin}: takes {n_inputs} arrays, {len(arrays)} were given")
            for slot, one in enumerate(arrays):
                if self.arrays.places is not None:
                    slot = self.arrays.places[slot]
                if self.names[slot] in named:
                    raise invalid(f"{self.origin}: {self.names[slot]} is given twice")
                named[self.names[slot]] = one
        if self.arrays.form is not None and named:
            self.take_numbers(named)
        for name in tuple(named):
            slot = self.slot_of(name)
            if slot >= n_inputs:
                outs[slot] = named.pop(name)
        if out is None:
            return outs
        if self.arrays.overwritten is not None:
            raise wrong_kind(
                f"{self.origin} takes no out: {self.names[n_inputs]} is written in place")
        value = self.outputs_given(out)
        for slot, one in enumerate(value, n_inputs):
            if one is not None:
                outs[slot] = one
        return outs

    cdef bytes sorted_by_function(self, tuple arrays, dict named):
        """Leave in `named` arrays by name for what a compiled function takes; gives the numbers."""
        found, numbers = self.arrays.takes(arrays, named, self.names)
        named.clear()
        named.update(found)
        if numbers is not None:
            self.arrays = with_numbers(self.arrays, numbers)
        return numbers

    cdef object outputs_given(self, object out):
        """The arrays of `out` in the order of the outputs, None where there is none."""
        cdef int index
        if self.arrays.nest is not None:
            value = self.arrays.nest.flat_outputs(out)
            if self.arrays.ties is None:
                return value
            rest = iter(value)
            found = []
            for index in range(self.request.n_outputs):
                found.append(None if self.arrays.ties[index] >= 0 else next(rest))
            return found
        if gives_one(self):
            return (out,)
        if not isinstance(out, (tuple, list)) or len(out) != self.request.n_outputs:
            raise invalid(f"{self.origin}: out must be a tuple of {self.request.n_outputs} arrays")
        return out

    cdef int take_numbers(self, dict named) except -1:
        """Take the numbers that are given by name, if the plan holds for them too."""
        cdef int index
        roles = self.handle.scalar_roles
        arguments = {}
        for role in roles:
            word = self.word_for(role)
            if word in named or role in named:
                arguments[role] = named.pop(word if word in named else role)
        if not arguments:
            return 0
        values = []
        for index, role in enumerate(roles):
            values.append(arguments[role] if role in arguments
                          else self.request.numbers[NUMBER_FORMS * index + <int>EXACT].real)
        dtypes = []
        for index in range(self.request.n_inputs):
            dtypes.append(self.request.operands[index].dtype)
        facts, forms, _ = self.described(values, dtypes)
        for index, role in enumerate(roles):
            dtype, bits, _ = facts[index]
            mask = self.handle.fact_masks[index]
            if role not in arguments:
                mask &= IS_BELOW
            if ((bits | dtype << 8) & mask != facts_of(self.request, index) & mask
                    or role in arguments and self.handle.keyed_by_numbers):
                raise invalid(f"{self.origin}: {self.word_for(role)} is {values[index]!r}, which "
                              "shapes the plan: make another executor for it")
        for index, role in enumerate(roles):
            if role in arguments:
                rounded, exact, whole = forms[index]
                self.request.numbers[NUMBER_FORMS * index].real = rounded
                self.request.numbers[NUMBER_FORMS * index + 1].real = exact
                self.request.numbers[NUMBER_FORMS * index + 2].whole = whole
        return 0

    cdef object described(self, list values, list dtypes):
        """Numbers as plans know them; `described` of the form, in the caller's words."""
        try:
            return self.arrays.form.described(values, None, dtypes)
        except AclnnError as error:  # about one number, with which it begins
            role, space, rest = error.message.partition(" ")
            raise type(error)(
                error.status, f"{self.origin}: {self.word_for(role)}{space}{rest}") from None

    cdef int refuse_arrays(self) except -1:
        raise invalid(
            f"{self.origin}: bind other memory with aclSetTensorAddr; arrays by name are for "
            "executors made by aclnn.executor()")

    cdef int refuse_destroyed(self) except -1:
        if self.destroyed:
            raise AclnnError(INNER, f"{self.origin}: executor is destroyed")
        return 0

    cdef list bind(self, object arrays, char **addresses):
        """Bind other arrays of the planned description.

        Returns what is bound then, with the addresses of all operands. All of it is of one moment,
        whatever other threads bind.
        """
        cdef operand_t found
        cdef char *places[MANY]
        cdef int slot, n_inputs = self.request.n_inputs
        self.refuse_destroyed()
        if self.from_tensors:
            self.refuse_arrays()
        slots = {}
        for name, value in arrays.items():
            slot = self.slot_of(name)
            slots[slot] = self.fitting(slot, value, &found), value
            places[slot] = found.data
        # Nothing below lets another thread run: what is replaced is let go of at the end.
        self.refuse_destroyed()
        _before = self.bound, self.given
        bound, outputs = list(self.bound), list(self.given)
        for slot in range(len(self.names)):
            if slot in slots:
                bound[slot], value = slots[slot]
                self.request.operands[slot].data = places[slot]
                if slot >= n_inputs:
                    outputs[slot - n_inputs] = value
        self.follow_inputs(slots, bound, outputs)
        for slot in range(len(self.names)):
            addresses[slot] = self.request.operands[slot].data
        self.bound, self.given = bound, outputs
        for one in self.planned.packs:
            if one.source in slots:
                one.forget(<size_t>addresses[<int>one.source])
        return bound

    cdef int follow_inputs(self, dict slots, list bound, list outputs) except -1:
        """Have outputs that take the place of inputs follow those that are bound anew."""
        cdef int index, slot, taken
        if self.arrays.overwritten is None:
            return 0
        for index in range(self.request.n_outputs):
            slot, taken = self.request.n_inputs + index, self.arrays.overwritten[index]
            if taken in slots:
                bound[slot], outputs[index] = slots[taken]
                self.request.operands[slot].data = self.request.operands[taken].data
        return 0

    cdef object fitting(self, int slot, object value, operand_t *found):
        """The operand as an array, if it is of the planned description."""
        cdef const operand_t *planned
        name, array = self.names[slot], value
        planned = &self.request.operands[slot]
        if not read_array(value, found):
            called = f"{self.origin}: {name}"
            if slot < self.request.n_inputs and isinstance(value, (list, tuple)):
                array = interchange.from_list(value, called, dtype_of(planned.dtype))
            else:
                array = interchange.as_ndarray(value, called)
            read_or_refuse(called, array, found)
        if not fits(found, planned):
            message = (f"{self.origin}: {name} is {describe(array)}, but the plan is for "
                       f"{words_of(planned)}")
            if differ_in_dtype(found, planned):
                converted = interchange.conversion(name, value, planned.dtype)
                raise wrong_kind(f"{message}; convert with {converted}")
            raise invalid(message)
        if not found.writable and self.is_written(slot):
            raise invalid(f"{self.origin}: {name} is read-only")
        return array

    cdef list place_outputs(self, list bound, dict outs, char **addresses, object kind):
        """Find or make what a run writes; gives what it hands back, by output."""
        cdef operand_t found
        cdef bint tensors
        cdef int index, slot, first = self.request.n_inputs
        cdef list results = [], copies = []
        cdef list value = self.given
        for index in range(self.request.n_outputs):
            slot = first + index
            if self.arrays.ties is not None and self.arrays.ties[index] >= 0:
                addresses[slot] = addresses[<int>self.arrays.ties[index]]
                results.append(None)
            elif outs is not None and slot in outs and self.lies_otherwise(slot, outs[slot]):
                array = laid_out_as_planned(&self.request.operands[slot])
                read_array(array, &found)
                addresses[slot] = found.data
                copies.append((outs[slot], array))
                results.append(outs[slot])
            elif outs is not None and slot in outs:
                array = self.fitting(slot, outs[slot], &found)
                addresses[slot] = found.data
                bound = bound + [array]
                results.append(outs[slot])
            elif is_absent(self, slot) or bound[slot] is not None:
                results.append(value[index])
            else:
                tensors = makes_tensors(kind)
                array = new_output(self.planned, index, &found, tensors)
                addresses[slot] = found.data
                results.append(array if tensors else interchange.handed_to(kind, array))
                bound = bound + [array]
        results.append((bound, copies))  # keeps all of it alive as long as the run goes on
        return results

    cdef bint lies_otherwise(self, int slot, object value) except -1:
        """Whether an output for a compiled function is as planned but for where elements lie."""
        cdef operand_t found
        cdef const operand_t *planned = &self.request.operands[slot]
        cdef int axis
        if self.arrays.takes is None:
            return False
        if not (read_array(value, &found) or read_tensor(value, &found)):
            return False
        if found.dtype != planned.dtype or found.ndim != planned.ndim or fits(&found, planned):
            return False
        for axis in range(found.ndim):
            if found.shape[axis] != planned.shape[axis]:
                return False
            if found.strides[axis] == 0 and found.shape[axis] > 1:
                return False
        return found.writable

    cdef int make_outputs(self) except -1:
        """Have an array for every output that runs would make."""
        cdef operand_t found
        cdef int index
        bound = list(self.bound)
        if self.from_tensors or self.destroyed:
            return 0
        for index in range(self.request.n_outputs):
            slot = self.request.n_inputs + index
            if bound[slot] is None and not is_absent(self, slot):
                bound[slot] = new_output(self.planned, index, &found, False)
                self.request.operands[slot].data = found.data
        self.bound = bound
        return 0

    cdef int refuse_unbound(self, char **addresses) except -1:
        """Refuse to run where an operand has no memory: an executor that was unpickled has none."""
        cdef int slot
        for slot in range(self.request.n_inputs):
            if addresses[slot] == NULL and not is_absent(self, slot):
                raise invalid(
                    f"{self.origin}: {self.names[slot]} has no array: give one to the run")
        return 0

    cdef object addresses_now(self, char **addresses):
        """Addresses of the operands at this moment; refuses missing and freed memory.

        The list returned keeps them alive: another thread may bind, describe or destroy meanwhile.
        Lists of what is bound are replaced, never changed.
        """
        cdef int index, count = self.request.n_inputs + self.request.n_outputs
        cdef list held, bound = self.bound
        cdef aclTensor tensor
        if not self.from_tensors:
            return take_addresses(self, addresses)
        for index in range(count):
            if is_absent(self, index):
                continue
            tensor = <aclTensor>PyList_GET_ITEM(bound, index)
            tensor.follow()
            if tensor.device and not memory.is_alive(tensor.owner):
                raise AclnnError(INVALID, f"{self.names[index]} is in memory that was freed")
        held = [None] * count
        for index in range(count):  # nothing in here lets another thread run
            addresses[index] = NULL
            if is_absent(self, index):
                continue
            tensor = <aclTensor>PyList_GET_ITEM(bound, index)
            if (tensor.destroyed or tensor.c.version != self.versions[index]
                    or tensor.c.storage == NULL):
                self.check_tensor(tensor, index)
            addresses[index] = address_of(tensor.c)
            held[index] = tensor.owner
            if index >= self.request.n_inputs and not tensor.c.writable and self.planned.elements:
                raise AclnnError(
                    INVALID, f"{self.names[index]} is read-only, but is the output")
        return held

    cdef int check_tensor(self, aclTensor tensor, int index) except -1:
        if tensor.destroyed:
            raise AclnnError(NULLPTR, f"{self.names[index]} is a destroyed aclTensor")
        if tensor.c.version != self.versions[index]:
            raise AclnnError(
                INVALID, f"{self.names[index]} was described anew by aclInitTensor after phase "
                "one, which planned for what it was")
        if tensor.c.storage == NULL and self.planned.elements:
            raise AclnnError(NULLPTR, f"{self.names[index]} has no data")
        return 0
