"""The C-shaped function pairs: what phase one makes of a call, and the two phases as functions."""

cimport cython
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from aclnn.acl._frames cimport fastcall_t, strip_error
from aclnn.acl._lists cimport aclBoolArray, aclIntArray, aclTensorList, bools_of, ints_of
from aclnn.acl._tensor cimport aclScalar, aclTensor, take_view
from aclnn.acl.objects cimport c_bools, c_ints, c_scalar, c_tensor
from aclnn.api._arguments cimport (
    MAX_PARAMETERS,
    new_function,
    signature_t,
    take_arguments,
)
from aclnn.execution._bindings cimport copy_request
from aclnn.execution._executor cimport aclOpExecutor, new_executor
from aclnn.execution._launch cimport run_phase_two
from aclnn.acl._tensor_spec cimport ABSENT, MAX_DIMS, operand_t, splits_a_byte
from aclnn.compiler._plan_cache cimport OperatorHandle, find_plan, put_real
from aclnn.compiler._request cimport (
    NEGATIVE,
    NOT_REAL,
    NUMBER_FORMS,
    WHOLE,
    number_facts,
    put_absent,
    put_number,
    put_whole,
    request_t,
)

import sys

import numpy as np

from math import prod
from time import monotonic_ns

from aclnn.acl._tensor_spec import TensorSpec
from aclnn.acl import capture as captures, dtypes, errors, stream as streams
from aclnn.acl.arguments import as_kind, as_member, as_real, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_INNER_TILING_ERROR,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    ACLNN_SUCCESS,
    aclDataType,
)
from aclnn.acl.errors import AclnnError, why_null
from aclnn.api.tensors import tensor
from aclnn.graph.strides import expanded_strides, merged_around, merged_dims
from aclnn.operators.checks import broadcast_shapes
from aclnn.operators.declaration import REQUIRED

cdef int OK = int(ACLNN_SUCCESS)
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int TILING = int(ACLNN_ERR_INNER_TILING_ERROR)
cdef int INNER = int(ACLNN_ERR_INNER)

cdef dict KINDS = {
    "input": INPUT, "output": OUTPUT, "inout": INOUT, "inputs": LIST, "outputs": OUTPUTS,
    "scalar": SCALAR, "float": FLOAT, "bool": SWITCH, "int": SWITCH, "str": SWITCH,
    "ints": SWITCH, "bools": SWITCH,
    "dtype": SWITCH, "single": SINGLE, "absent": ABSENT_ONE, "later": LATER,
    "ignored": IGNORED, "zero": ZERO,
}
# What is added for people who give what NumPy and Python have.
cdef dict MADE_BY = {
    "aclTensor": "; aclnn.tensor(array) makes one",
    "aclScalar": "; aclCreateScalar(value, dataType) makes one",
}
# What parameters are that are objects of CANN's, and so may be null or destroyed.
cdef dict OBJECTS = {
    "input": aclTensor, "output": aclTensor, "inout": aclTensor, "inputs": aclTensorList,
    "outputs": aclTensorList, "single": aclTensorList, "scalar": aclScalar,
    "ints": aclIntArray, "bools": aclBoolArray,
}
cdef tuple RUN_PARAMETERS = tuple(
    map(sys.intern, ("workspace", "workspaceSize", "executor", "stream")))


@cython.final
cdef class EntryHandle:
    """A C-shaped function pair as phase one walks through it: a slot for every parameter.

    Parameters
    ----------
    handle : OperatorHandle
    entry : Entry
        The declaration of the pair.
    find : callable
        Finds the handle by the entry's name: pickles hold these two. Importable by its own name.
    """

    def __cinit__(self, OperatorHandle handle not None, entry, find):
        operator = handle.operator
        self.handle = handle
        self.entry = entry
        for self.place, one in enumerate(operator.entries, 1):
            if one.name == entry.name:
                break
        self.find = find
        self.made = {}
        self.name = entry.name
        self.plan_name = f"{entry.name}GetWorkspaceSize"
        self.names = {role: role for role in operator.outputs}
        self.names.update(entry.words(operator.outputs))
        self.operand_names = tuple(
            self.names.get(role, role) for role in (*operator.kernel_operands, *operator.outputs)
        )
        unread = []
        for role in operator.unread:
            unread.append(self.names.get(role, role))
        self.unread = frozenset(unread)
        self.n_parameters = len(entry.parameters)
        if self.n_parameters > MAX_PARAMETERS:
            raise ValueError(f"{entry.name} has {self.n_parameters} parameters, at most "
                             f"{MAX_PARAMETERS} are possible")
        self.parameter_names = tuple(sys.intern(p.name) for p in entry.parameters)
        take_all(&self.plan_function.signature, self.n_parameters)
        take_all(&self.run_function.signature, len(RUN_PARAMETERS))
        switch_roles = tuple(attribute.role for attribute in operator.switches)
        fixed = dict(entry.fixed)
        self.fixed_switches = tuple(
            fixed.get(attribute.role, attribute.default) for attribute in operator.switches
        )
        self.fixed_code = handle.learn_switches(self.fixed_switches) if operator.switches else 0
        self.switch_kinds = tuple(p.kind for p in entry.parameters)
        choices = {attribute.role: attribute.choices for attribute in operator.attributes}
        self.choices = tuple(choices.get(p.role, ()) for p in entry.parameters)
        self.objects = tuple(OBJECTS.get(p.kind) for p in entry.parameters)
        for index, attribute in enumerate(operator.scalars):
            default = fixed.get(attribute.role, attribute.default)
            if default is None:
                put_absent(&self.defaults, index)
            elif default is not REQUIRED:
                put_number(&self.defaults, index, float(default), 0)
        for index, parameter in enumerate(entry.parameters):
            self.kinds[index] = KINDS[parameter.kind]
            self.nullable[index] = parameter.optional or parameter.is_unused
            if parameter.is_unused:
                self.slots[index] = 0
            elif parameter.kind in ("input", "inout", "inputs", "single"):
                self.slots[index] = operator.kernel_operands.index(parameter.role)
            elif parameter.kind in ("output", "outputs"):
                self.slots[index] = operator.outputs.index(parameter.role)
            elif parameter.kind in ("scalar", "float"):
                self.slots[index] = handle.scalar_roles.index(parameter.role)
            elif parameter.role in operator.inputs:
                self.kinds[index] = ARRAY
                self.has_arrays = True
                self.slots[index] = operator.kernel_operands.index(parameter.role)
            else:
                self.slots[index] = switch_roles.index(parameter.role)
                fixed_one = self.fixed_switches[self.slots[index]]
                self.shares_kind[index] = type(fixed_one).__name__ == parameter.kind
        self.own_order = self.order_of(handle.n_inputs, handle.n_outputs)

    def functions(self, str module not None, str plan_doc not None, str run_doc not None):
        """Both phases as functions that are called without a frame of their own.

        Parameters
        ----------
        module : str
            Where they can be imported from.
        plan_doc, run_doc : str
            Their docstrings, each after a line with its signature, and one of two hyphens, and an
            empty one.
        """
        self.c_texts = tuple(map(str.encode, (
            self.plan_name, plan_doc, self.name, run_doc)))
        plan_name, plan_doc_text, run_name, run_doc_text = self.c_texts
        plan = new_function(&self.plan_function, self, module, plan_name, plan_doc_text,
                            <void *>phase_one_called)
        run = new_function(&self.run_function, self, module, run_name, run_doc_text,
                           <void *>phase_two_called)
        self.made = {self.plan_name: plan, self.name: run}
        return plan, run

    def __reduce__(self):
        return self.find, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        if name not in self.made:
            raise AttributeError(name)
        return self.made[name]

    cdef object plan(self, PyObject **arguments):
        """Phase one: ``(workspaceSize, executor, status)``."""
        cdef aclOpExecutor executor
        cdef long long began = monotonic_ns() if _has_hook else 0
        try:
            executor = self.read(arguments)
            self.find_plan_for(executor)
            if self.has_arrays and executor.planned.steps != NULL:  # else rules have ended early
                self.check_arrays(executor, arguments)
            if _has_hook:
                _hook("plan", self.name, executor, monotonic_ns() - began, OK)
            return executor.planned.workspace_size, executor, OK
        except (AclnnError, MemoryError) as error:
            status = self.plan_failed(error, self.as_tuple(arguments))
        if _has_hook:
            _hook("plan", self.name, None, monotonic_ns() - began, status)
        return 0, None, status

    cdef int check_arrays(self, aclOpExecutor executor, PyObject **arguments) except -1:
        """Check tensors that stand for arrays of numbers; rules know only shapes of tensors.
        """
        cdef int index
        value = {}
        for index in range(self.n_parameters):
            if self.kinds[index] == ARRAY and <object>arguments[index] is not None:
                value[self.entry.parameters[index].role] = (
                    <aclIntArray><object>arguments[index]).numbers()
        check = self.handle.operator.checks_arrays
        if value and check is not None:
            message = check(executor.planned.call, value)
            if message is not None:
                raise AclnnError(self.handle.operator.arrays_status, message)
        return 0

    cdef int read_unlike(self, aclOpExecutor executor, int index, int slot,
                         object value) except -1:
        """An input that is no tensor; what must not be given, and what does not count."""
        cdef int kind = self.kinds[index]
        if value is None or kind == IGNORED or (kind == ZERO and type(value) is int and value == 0):
            return 0
        if kind == ABSENT_ONE and type(value) is aclTensorList and is_void(<aclTensorList>value):
            return 0
        if kind == ARRAY:
            numbers = np.array((<aclIntArray>value).numbers(), np.int64)
            return self.read_tensor(executor, slot, <aclTensor>tensor(numbers))
        name = self.entry.parameters[index].name
        if kind == SINGLE:
            items = (<aclTensorList>value).items
            if len(items) == 1:
                return self.read_tensor(executor, slot, <aclTensor>items[0])
            raise AclnnError(TILING, f"{name} has {len(items)} tensors, must have 1: more are not "
                             "implemented here")
        if kind == ZERO:
            raise AclnnError(TILING, f"{name} is {shown(value)}, must be 0: others are not "
                             "implemented here")
        status = INVALID if kind == ABSENT_ONE else TILING
        raise AclnnError(status, f"{name} is given, must be null: it is not implemented here")

    cdef tuple as_tuple(self, PyObject **arguments):
        cdef list found = []
        cdef int index
        for index in range(self.n_parameters):
            found.append(<object>arguments[index])
        return tuple(found)

    cdef int plan_failed(self, object error, tuple arguments) except -1:
        """The status of a phase one that failed, with a message."""
        if isinstance(error, MemoryError):
            return errors.fail(INNER, f"{self.plan_name}: {error}")
        from aclnn.errors import error_report

        return errors.fail(error.status, error_report.failed_phase_one(self, error, arguments))

    cdef int find_plan_for(self, aclOpExecutor executor) except -1:
        executor.planned = find_plan(
            self.handle, executor.request, self.names, executor.scalar_texts, executor.switches)
        return 0

    cdef aclOpExecutor begin(self, int n_inputs, int n_outputs):
        """An executor of so many operands, of which it knows nothing yet."""
        cdef aclOpExecutor executor = new_executor()
        executor.handle = self.handle
        executor.origin = self.name
        executor.from_tensors = True
        executor.make_room(n_inputs, n_outputs)
        executor.names = self.operand_names
        executor.bound = [None] * (n_inputs + n_outputs)
        executor.request.operator_id = self.handle.id
        return executor

    cdef int finish(self, aclOpExecutor executor, object switches, tuple starts) except -1:
        """Name the operands, and take the switches, which are fixed where there is no list."""
        if switches is None:
            executor.switches = self.fixed_switches
            executor.request.switches = self.fixed_code
        else:
            executor.switches = tuple(switches)
            executor.request.switches = self.handle.switch_code(executor.switches)
        if starts is not None:
            self.name_lists(executor, starts)
        if self.handle.makes_list:
            self.name_outputs_of(executor)
        executor.order = self.own_order
        if starts is not None or self.handle.makes_list:
            executor.order = self.order_of(
                executor.request.n_inputs, executor.request.n_outputs, starts)
        return 0

    cdef aclOpExecutor read_in_c(self, const request_t *request, PyObject **arguments):
        """The call of a request that a program's arguments were read into, but for what is known in
        Python alone: `arguments` has switches and scalars. It is bound to no tensors.
        """
        cdef aclOpExecutor executor = self.begin(request.n_inputs, request.n_outputs)
        cdef int index, count = request.n_inputs + request.n_outputs
        cdef object switches = None
        cdef tuple starts = None
        copy_request(request, executor.request)
        memcpy(executor.request.operands, request.operands, count * sizeof(operand_t))
        if self.handle.is_variadic:  # the last input is the list
            starts = (*range(self.handle.n_inputs), request.n_inputs)
        for index in range(self.n_parameters):
            if self.kinds[index] == SWITCH:
                if switches is None:
                    switches = list(self.fixed_switches)
                switches[self.slots[index]] = self.read_switch(index, <object>arguments[index])
            elif self.kinds[index] == SCALAR and <object>arguments[index] is not None:
                self.keep_text(executor, self.slots[index], <object>arguments[index])
        self.finish(executor, switches, starts)
        return executor

    cdef aclOpExecutor read(self, PyObject **arguments):
        """Check for null arguments and take the call apart."""
        cdef aclOpExecutor executor
        cdef int index, kind, slot, n_inputs = self.handle.n_inputs, n_outputs
        cdef bint deep = False
        cdef object switches = None
        cdef tuple starts = None  # of operands' slots, where there are lists
        self.refuse_null(arguments)
        if self.handle.is_variadic:
            starts = self.starts_of(arguments)
            n_inputs = starts[self.handle.n_inputs]
        n_outputs = self.count_outputs(arguments)
        executor = self.begin(n_inputs, n_outputs)
        self.take_defaults(executor.request)
        for index in range(self.n_parameters):
            kind, slot, value = self.kinds[index], self.slots[index], <object>arguments[index]
            if kind == SWITCH:
                if value is self.fixed_switches[slot] and self.shares_kind[index]:
                    continue
                if switches is None:
                    switches = list(self.fixed_switches)
                switches[slot] = self.read_switch(index, value)
                continue
            if kind == SCALAR:
                self.read_scalar(executor, index, slot, value)
                continue
            if kind == FLOAT:
                self.read_float(executor, index, slot, value)
                continue
            if starts is not None and kind != OUTPUT and kind != OUTPUTS:
                slot = starts[slot]
            if kind >= SINGLE:
                self.read_unlike(executor, index, slot, value)
            elif value is not None and (kind == INPUT or kind == OUTPUT):
                slot += n_inputs if kind == OUTPUT else 0
                self.read_tensor(executor, slot, <aclTensor>value)
                deep |= (<aclTensor>value).c.ndim > MAX_DIMS
            elif value is not None:
                deep |= self.read_tensors(executor, kind, slot, value)
        if self.handle.operator.measured:
            self.make_room_for_shapes(executor)
        self.finish(executor, switches, starts)
        if deep:
            self.refuse_rank(executor)
        return executor

    cdef int make_room_for_shapes(self, aclOpExecutor executor) except -1:
        """Give outputs of a size that data decide memory for their shapes."""
        cdef int slot
        cdef int first = executor.request.n_inputs
        operator = self.handle.operator
        for shape, rank in operator.measured.values():
            slot = first + operator.outputs.index(shape)
            self.read_tensor(executor, slot, <aclTensor>tensor(np.zeros(rank, np.int64)))
        return 0

    cdef tuple starts_of(self, PyObject **arguments):
        """The first slot of each operand, and how many slots there are: tensors of a list have one
        each, and so has its end where others follow."""
        cdef int index
        operator = self.handle.operator
        counts, starts = [1] * self.handle.n_inputs, [0]
        for index in range(self.n_parameters):
            if self.kinds[index] == LIST:
                value = <object>arguments[index]
                counts[self.slots[index]] = (
                    (0 if value is None else len((<aclTensorList>value).items))
                    + operator.is_ended(self.entry.parameters[index].role))
        for count in counts:
            starts.append(starts[-1] + count)
        return tuple(starts)

    cdef int count_outputs(self, PyObject **arguments) except -1:
        """Number of outputs: as many as the list has, where they are one."""
        cdef int index
        if not self.handle.makes_list:
            return self.handle.n_outputs
        for index in range(self.n_parameters):
            if self.kinds[index] == OUTPUTS:
                count = len((<aclTensorList>arguments[index]).items)
                if count == 0:
                    self.refuse(index, "empty", "a list of tensors")
                return count
        return self.handle.n_outputs

    cdef int name_outputs_of(self, aclOpExecutor executor) except -1:
        """A name for each tensor of the list that is written."""
        cdef int index
        *names, listed = executor.names
        for index in range(executor.request.n_outputs):
            names.append(f"{listed}[{index}]")
        executor.names = tuple(names)
        return 0

    cdef void take_defaults(self, request_t *request) noexcept nogil:
        """Numbers that the pair does not take; and every operand absent."""
        cdef int index
        request.pair = self.place
        request.n_numbers = self.handle.n_scalars
        for index in range(request.n_numbers):
            request.facts[index] = self.defaults.facts[index]
        for index in range(NUMBER_FORMS * request.n_numbers):
            request.numbers[index] = self.defaults.numbers[index]
        for index in range(request.n_inputs + request.n_outputs):
            request.operands[index].ndim = ABSENT
            request.operands[index].data = NULL
            request.operands[index].dtype = request.operands[index].format = 0
            request.operands[index].writable = True

    cdef int name_lists(self, aclOpExecutor executor, tuple starts) except -1:
        """A name for each tensor of the lists."""
        cdef int index, position, count
        operator = self.handle.operator
        names = []
        for index, role in enumerate(operator.kernel_operands):
            name = self.operand_names[index]
            if role not in operator.lists:
                names.append(name)
                continue
            count = starts[index + 1] - starts[index] - operator.is_ended(role)
            for position in range(count):
                names.append(f"{name}[{position}]")
            if operator.is_ended(role):
                names.append(name)
        executor.names = (*names, *self.operand_names[self.handle.n_inputs:])
        return 0

    def order_of(self, int n_inputs, int n_outputs, starts=None):
        """The slots that each tensor parameter stands for, in the order of the signature: inputs,
        then outputs; a tensor in place is both."""
        cdef int first
        operator = self.handle.operator
        if starts is None:
            starts = (*range(self.handle.n_inputs), n_inputs)
        inputs, outputs = [], []
        known = frozenset(p.role for p in self.entry.parameters)
        shared = tuple(p.role for p in self.entry.parameters if p.kind == "inout")
        left = tuple(n for n, role in enumerate(self.handle.operator.outputs) if role not in known)
        for index, parameter in enumerate(self.entry.parameters):
            if parameter.kind == "inputs":
                first = self.slots[<int>index]
                for slot in range(starts[first],
                                  starts[first + 1] - operator.is_ended(parameter.role)):
                    inputs.append((slot,))
            elif parameter.kind in ("input", "single"):
                inputs.append((starts[self.slots[<int>index]],))
            elif parameter.kind == "inout":
                number = left[shared.index(parameter.role)]
                inputs.append((starts[self.slots[<int>index]], n_inputs + number))
            elif parameter.kind == "output":
                outputs.append((n_inputs + self.slots[<int>index],))
            elif parameter.kind == "outputs":
                for slot in range(n_inputs, n_inputs + n_outputs):
                    outputs.append((slot,))
        return (*inputs, *outputs)

    cdef int read_tensors(self, aclOpExecutor executor, int kind, int slot, object value) except -1:
        """Take a list or a tensor in place; whether any has more dimensions than plans can have."""
        cdef int index
        cdef bint deep = False
        if kind == LIST:
            for index, tensor in enumerate((<aclTensorList>value).items):
                self.read_tensor(executor, slot + index, <aclTensor>tensor)
                deep |= (<aclTensor>tensor).c.ndim > MAX_DIMS
            return deep
        if kind == OUTPUTS:
            for index, tensor in enumerate((<aclTensorList>value).items):
                self.read_tensor(executor, executor.request.n_inputs + index, <aclTensor>tensor)
                deep |= (<aclTensor>tensor).c.ndim > MAX_DIMS
            return deep
        if kind == OUTPUT:
            self.read_tensor(executor, executor.request.n_inputs + slot, <aclTensor>value)
        else:
            self.read_tensor(executor, slot, <aclTensor>value)
        if kind == INOUT:
            for found in self.own_order:
                if found[0] == slot:
                    index = executor.request.n_inputs + found[1] - self.handle.n_inputs
                    self.read_tensor(executor, index, <aclTensor>value)
        return (<aclTensor>value).c.ndim > MAX_DIMS

    cdef int refuse_rank(self, aclOpExecutor executor) except -1:
        """Check the rules for tensors of more dimensions than plans can have: an earlier one may be
        broken too, and most operators have a rule about dimensions."""
        from aclnn.compiler import phase_one, settings

        operands = []
        for tensor in executor.bound:
            operands.append(None if tensor is None else describe_tensor(tensor))
        asked = phase_one.Request(
            self.handle.operator, operands, executor.request.n_inputs,
            number_facts(executor.request), executor.scalar_texts, executor.switches, self.names,
            frozenset())
        _, done = phase_one.check_call(asked, settings.get_soc_version())
        if done:
            flatten(executor)
            return 0
        if self.handle.operator.any_rank:
            self.merge_dims(executor)
            return 0
        for slot, (name, tensor) in enumerate(zip(executor.names, executor.bound)):
            if tensor is None or (<aclTensor>tensor).c.ndim <= MAX_DIMS:
                continue
            if name in self.unread:
                shape = describe_tensor(tensor).shape
                put_layout(&executor.request.operands[<int>slot], (prod(shape),), (1,))
            else:
                raise AclnnError(INVALID, f"{name} has {tensor.ndim} dimensions, at most "
                                 f"{MAX_DIMS} are supported")

    cdef int merge_dims(self, aclOpExecutor executor) except -1:
        """Describe tensors of more dimensions, which broadcast, with as many as plans have."""
        cdef int slot
        slots, shapes, strides = [], [], []
        for slot, tensor in enumerate(executor.bound):
            if tensor is None:
                continue
            shape, steps = tensor.dims(), tensor.steps()
            if executor.names[slot] in self.unread:
                put_layout(&executor.request.operands[slot], (prod(shape),), (1,))
            else:
                slots.append(slot)
                shapes.append(shape)
                strides.append(steps)
        shape = broadcast_shapes(*shapes)
        expanded = []
        for own, steps in zip(shapes, strides):
            expanded.append(expanded_strides(own, steps, shape))
        index = self.handle.operator.dim_switch
        if index < 0:
            merged_shape, merged = merged_dims(shape, expanded)
        else:
            switches = list(executor.switches)
            merged_shape, merged, switches[index] = merged_around(
                shape, expanded, switches[index] % len(shape))
            executor.switches = tuple(switches)
            executor.request.switches = self.handle.switch_code(executor.switches)
        if len(merged_shape) > MAX_DIMS:
            raise AclnnError(INVALID, f"{executor.names[0]} has strides {strides[0]}, by which its "
                             f"{len(strides[0])} dimensions do not become {MAX_DIMS}")
        for slot, steps in zip(slots, merged):
            put_layout(&executor.request.operands[slot], merged_shape, steps)
        return 0

    cdef int refuse_null(self, PyObject **arguments) except -1:
        """Null arguments come first, whatever else is wrong."""
        cdef int index, foreign = -1
        for index in range(self.n_parameters):
            value = <object>arguments[index]
            if self.is_alive(index, value):
                continue
            requested = self.objects[index]
            if value is None:
                if not self.nullable[index] and (requested is not None
                                                 or self.switch_kinds[index] == "str"):
                    why = "" if requested is None else why_null(requested.__name__)
                    raise AclnnError(NULLPTR, f"{self.entry.parameters[index].name} is null{why}")
                continue
            if requested is None:
                continue
            if type(value) is not requested and not isinstance(value, requested):
                foreign = index if foreign < 0 else foreign
            elif is_destroyed(value, self.kinds[index]):
                raise AclnnError(NULLPTR, f"{self.entry.parameters[index].name} is a destroyed "
                                 f"{type(value).__name__}")
            elif self.kinds[index] in (LIST, OUTPUTS, SINGLE):
                self.refuse_dead(index, <aclTensorList>value)
        if foreign >= 0:
            requested = self.objects[foreign].__name__
            self.refuse(foreign, type(<object>arguments[foreign]).__name__,
                        f"an {requested}{MADE_BY.get(requested, '')}")
        return 0

    cdef bint is_alive(self, int index, object value) noexcept:
        """Whether an argument is a tensor or a scalar that may be used: what most are."""
        cdef int kind = self.kinds[index]
        if kind == SCALAR:
            return type(value) is aclScalar and not (<aclScalar>value).destroyed
        if kind == INPUT or kind == OUTPUT or kind == INOUT:
            return type(value) is aclTensor and not (<aclTensor>value).destroyed
        return False

    cdef int refuse_dead(self, int index, aclTensorList listed) except -1:
        for position, tensor in enumerate(listed.items):
            if (<aclTensor>tensor).destroyed:
                name = self.entry.parameters[index].name
                raise AclnnError(NULLPTR, f"{name}[{position}] is a destroyed aclTensor")
        return 0

    def refuse(self, index, what, requested):
        name = self.entry.parameters[index].name
        raise AclnnError(INVALID, f"{name} is {what}, must be {requested}")

    cdef object read_switch(self, int index, object value):
        kind = self.switch_kinds[index]
        if value is None and self.nullable[index]:
            return None
        if kind == "ints":
            return ints_of(<c_ints *>(<aclIntArray>value).head)
        if kind == "bools":
            return bools_of(<c_bools *>(<aclBoolArray>value).head)
        if kind == "dtype":
            return self.read_dtype(index, value)
        try:
            found = as_kind(kind, value)
        except TypeError:
            self.refuse(index, shown(value), f"{'an' if kind == 'int' else 'a'} {kind}")
        if kind != "int":
            return found
        if not -(2**63) <= found < 2**63:
            self.refuse(index, shown(value), "an int of 64 bits")
        choices = self.choices[index]
        return choices[found] if 0 <= found < len(choices) else found

    def read_dtype(self, int index, value):
        name = self.entry.parameters[index].name
        return aclDataType(as_member(name, value, aclDataType))

    cdef int read_scalar(self, aclOpExecutor executor, int index, int slot,
                         aclScalar value) except -1:
        if value is None:  # which may be, and keeps what `take_defaults` took
            return 0
        take_scalar(self.handle, &value.c, executor.request, slot)
        return self.keep_text(executor, slot, value)

    cdef int keep_text(self, aclOpExecutor executor, int slot, object scalar) except -1:
        """Keep the words for a scalar of which a rule may speak."""
        if executor.request.facts[slot] & (NEGATIVE | NOT_REAL):
            if executor.scalar_texts is None:
                executor.scalar_texts = {}
            executor.scalar_texts[self.handle.scalar_roles[slot]] = repr(scalar)
        return 0

    cdef int read_float(self, aclOpExecutor executor, int index, int slot, object value) except -1:
        try:
            found = value if type(value) is float else as_real(value)
        except Exception:  # whatever its __float__ raises
            name = self.entry.parameters[index].name
            raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a real number") from None
        put_real(self.handle, executor.request, slot, found, ACL_DOUBLE)
        return 0

    cdef int read_tensor(self, aclOpExecutor executor, int slot, aclTensor value) except -1:
        if splits_a_byte(value.c.dtype, value.c.offset):
            name = executor.names[slot] if slot < len(executor.names) else "a tensor"
            raise AclnnError(INVALID, f"{name} has offset {value.offset}, where an element of "
                             f"{dtypes.cann_name(aclDataType(value.dtype))} begins inside a byte")
        executor.bound[slot] = value
        executor.versions[slot] = value.c.version
        take_view(value.c, &executor.request.operands[slot])
        return 0

    cdef object run(self, workspace, workspaceSize, executor, stream):
        """Phase two: check, then run at once or queue on the stream."""
        try:
            status = run_phase_two(
                self.handle, self.name, workspace, workspaceSize, executor, stream)
        except AclnnError as error:
            status = self.failed(error.status, error, executor, stream)
        except MemoryError as error:
            status = self.failed(INNER, error, executor, stream)
        if _has_hook:
            _hook("run", self.name, executor, 0, status)
        return status

    cdef object failed(self, int status, error, executor, stream):
        """The status of a phase two that failed, which a capture of its stream cannot record."""
        message = f"{self.name}: {error}"
        if isinstance(executor, aclOpExecutor) and isinstance(stream, streams.aclrtStream):
            captures.operation_failed(stream, message)
        return errors.fail(status, message)


cdef void take_all(signature_t *signature, int n_parameters) noexcept:
    """Require all parameters, each of which fills the slot of its position."""
    cdef int index
    signature.n_positional = signature.n_required = n_parameters
    for index in range(n_parameters):
        signature.slots[index] = index


cdef object call_phase_one(object form, PyObject *const *values, Py_ssize_t n_values,
                           PyObject *names):
    """Call ``aclnnXxxGetWorkspaceSize``."""
    cdef EntryHandle entry = <EntryHandle>form
    cdef PyObject *value[MAX_PARAMETERS]
    memset(value, 0, entry.n_parameters * sizeof(value[0]))
    take_arguments(entry.plan_name, entry.parameter_names, &entry.plan_function.signature,
                   values, n_values, names, value)
    return entry.plan(value)


cdef object call_phase_two(object form, PyObject *const *values, Py_ssize_t n_values,
                           PyObject *names):
    """Call ``aclnnXxx``."""
    cdef EntryHandle entry = <EntryHandle>form
    cdef PyObject *value[4]
    value[0] = value[1] = value[2] = value[3] = NULL
    take_arguments(entry.name, RUN_PARAMETERS, &entry.run_function.signature, values, n_values,
                   names, value)
    return entry.run(<object>value[0], <object>value[1], <object>value[2], <object>value[3])


cdef PyObject *phase_one_called(PyObject *form, PyObject *const *values, Py_ssize_t n_values,
                                PyObject *names) noexcept:
    """`call_phase_one`, whose errors end at the caller's line."""
    cdef PyObject *result = (<fastcall_t>call_phase_one)(form, values, n_values, names)
    if result == NULL:
        strip_error()
    return result


cdef PyObject *phase_two_called(PyObject *form, PyObject *const *values, Py_ssize_t n_values,
                                PyObject *names) noexcept:
    cdef PyObject *result = (<fastcall_t>call_phase_two)(form, values, n_values, names)
    if result == NULL:
        strip_error()
    return result


cdef bint is_empty_vector(const c_tensor *value) noexcept:
    return value.ndim == 1 and value.shape[0] == 0


cdef bint is_void(aclTensorList listed):
    """Whether a list has no tensor, or a single one of shape (0,): it counts as null."""
    items = listed.items
    if len(items) == 1:
        return is_empty_vector((<aclTensor>items[0]).c)
    return len(items) == 0


cdef bint is_destroyed(object value, int kind):
    if kind in (INPUT, OUTPUT, INOUT):
        return (<aclTensor>value).destroyed
    return value.destroyed


cdef int flatten(aclOpExecutor executor) except -1:
    """Describe tensors of more dimensions than plans have with one: nothing is done with them."""
    cdef int slot
    for slot, tensor in enumerate(executor.bound):
        if tensor is not None and (<aclTensor>tensor).c.ndim > MAX_DIMS:
            count = prod(describe_tensor(tensor).shape)
            put_layout(&executor.request.operands[slot], (count,), (1,))
    return 0


cdef int put_layout(operand_t *operand, shape, strides) except -1:
    """Describe an operand as of another shape, which has at most `MAX_DIMS` dimensions."""
    cdef int axis
    operand.ndim = <int>len(shape)
    for axis in range(operand.ndim):
        operand.shape[axis], operand.strides[axis] = shape[axis], strides[axis]
    return 0


cdef object describe_tensor(aclTensor value):
    """The description of a tensor of any rank, for rules."""
    return TensorSpec(aclDataType(value.dtype), value.dims(), value.steps(), value.format,
                      value.writable or value.c.storage == NULL)


cdef void take_scalar(OperatorHandle handle, const c_scalar *value, request_t *request,
                      int slot) noexcept nogil:
    """Take a scalar's number, with the facts that the operator's plans depend on."""
    if not value.is_real:
        put_number(request, slot, value.exact, value.dtype)
        # What has no integer has an imaginary part in its place: `Lowering.complex_number`.
        request.numbers[NUMBER_FORMS * slot + WHOLE].real = value.imaginary
        request.facts[slot] |= NOT_REAL
    elif value.is_whole:
        put_whole(request, slot, value.rounded, value.whole, value.dtype)
    else:
        put_real(handle, request, slot, value.exact, value.dtype)


cdef bint _has_hook = False


cdef bint has_call_hook() noexcept nogil:
    """Whether both phases call a hook."""
    return _has_hook


def set_call_hook(hook):
    """Have ``hook(what, name, executor, nanoseconds, status)`` called after both phases.

    `what` is "plan" or "run", `executor` None where phase one failed.
    """
    global _has_hook, _hook
    _has_hook = hook is not None
    _hook = hook


_hook = None
