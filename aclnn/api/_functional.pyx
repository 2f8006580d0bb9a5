"""The functional layer's fast path: arrays in, arrays out.

A call on NumPy arrays reads their headers, finds the plan, and runs it.  Everything else an
array may be (a DLPack exporter, a byte-swapped or misaligned array) is turned into such arrays
first, by `aclnn.execution.arrays`.
"""

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject, PyTypeObject
from libc.string cimport memcpy, memset

from aclnn.graph.runtime.kernel_abi cimport kernel_number

from aclnn.acl._frames cimport fastcall_t, put_error, take_error
from aclnn.acl.numbers cimport numbers_of
from aclnn.api._arguments cimport function_t, new_function, take_arguments
from aclnn.execution._fastcall cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from aclnn.execution._bindings cimport ArrayForm
from aclnn.execution._executor cimport aclOpExecutor, new_executor
from aclnn.execution._operand cimport (
    describe_output,
    new_output,
    read_array,
    read_or_refuse,
    take_absent,
)
from aclnn.execution._tensors cimport (
    is_tensor,
    have_channels_last,
    lay_out_alike,
    lay_out_channels_last,
    lies_otherwise,
    new_tensor,
    read_tensor,
    read_tracked,
    records_plainly,
    stack_channels_last,
    tell_written,
)
from aclnn.acl._tensor_spec cimport ABSENT, operand_t
from aclnn.compiler._compiled_call cimport CompiledCall, run_with_own_workspace
from aclnn.compiler._plan_cache cimport UNSEEN, OperatorHandle, find_plan, plain, put_real
from aclnn.compiler._request cimport (
    INHERIT,
    MANY,
    MAX_NUMBERS,
    NUMBER_FORMS,
    SEVERAL,
    number_facts,
    put_absent,
    put_number,
    put_whole,
    request_t,
)

import sys

import numpy as np

from aclnn.acl.arguments import NumberOfRun, as_int, as_real, as_truth, shown
from aclnn.acl.constants import aclDataType
from aclnn.acl._frames import leave_out
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.acl.rounding import as_float_once
from aclnn.errors import refusals
from aclnn.execution import arrays
from aclnn.api.options import as_option
from aclnn.operators.declaration import REQUIRED

cdef extern from "fp_environment.h" nogil:
    double fp_rounded_whole(long long) noexcept

cdef extern from "Python.h":
    bint PyType_IsSubtype(PyTypeObject *, PyTypeObject *) noexcept

cdef object LARGE = 2**62
cdef double EXACT = 2.0**53  # up to here doubles hold all integers

cdef enum:
    # Where the arguments of a call go: operands in the kernels' order, outputs, numbers, switches.
    MOST_INPUTS = 32
    FIRST = 0
    OUT = FIRST + MOST_INPUTS
    NUMBERS = OUT + 1
    SWITCHES = NUMBERS + MAX_NUMBERS
    MOST_SWITCHES = 16
    MOST_SMALL = 6  # operands of most operators; a small frame stays in the nearest cache
    OPTION = SWITCHES + MOST_SWITCHES  # that of `option_form`
    SLOTS = OPTION + 1
    FOREIGN = -1  # an operand is no array whose memory kernels can read
    # What numbers are for rules that ask: Python's own.
    ACL_FLOAT = 0
    ACL_INT64 = 9
    ACL_BOOL = 12


@cython.final
cdef class FunctionalHandle:
    """One functional form: its operator, the order of its operands, and their names.

    Parameters
    ----------
    handle : OperatorHandle
    name : str
    parameters : sequence of str
        Of the function, in order, inputs first.
    n_positional, n_required : int
        How many may be given by position, and how many have to be given, the first ones.
    find : callable
        Finds the handle by `name`: pickles hold these two. Importable by its own name.
    """

    cdef readonly OperatorHandle handle
    cdef readonly str name
    cdef readonly dict names
    cdef tuple operand_names
    cdef tuple switches, default_switches
    cdef int n_switches
    cdef int used_slots[SLOTS]  # those that a call reads
    cdef int n_used
    cdef tuple scalar_defaults, nullable
    cdef tuple parameter_names
    cdef int default_code
    cdef tuple latest_switches
    cdef int latest_code
    cdef PyObject *seen_given[MOST_SWITCHES]  # the latest that were read, what they are kept by,
    cdef tuple seen_kept, seen_switches       # and the switches as Python reads them
    cdef tuple counted_switches  # of the latest list of results: what it was made of
    cdef operand_t counted_input
    cdef int latest_count
    cdef bint in_place
    cdef tuple overwritten  # of a form in place, for each output the slot of the input, or -1
    cdef bint has_layout  # whether PyTorch may lay the first result out otherwise than densely
    cdef bint keeps_channels_last
    cdef int[MOST_INPUTS] lies_as  # slots of the inputs as which it is laid out, the first deciding
    cdef int n_lies_as
    cdef request_t defaults  # the numbers that hold where none are given
    cdef readonly tuple outputs
    cdef public object differentiable  # takes calls over that PyTorch differentiates or dispatches
    cdef public object recorded  # takes those of them whose operands are plain tensors of the CPU
    cdef readonly FunctionalHandle number_form  # what takes a number where an operand is expected
    cdef int number_slot
    cdef tuple moves  # from where to where the arguments go then
    cdef readonly FunctionalHandle option_form  # what takes calls with an option of this form alone
    cdef str option_name
    cdef tuple option_choices
    cdef tuple option_moves
    cdef function_t own_function
    cdef bytes c_name, c_doc
    cdef object find  # by name
    cdef object made  # the function, once there is one

    def __cinit__(self, OperatorHandle handle not None, str name not None, parameters,
                  int n_positional, int n_required, find):
        operator = handle.operator
        self.handle = handle
        self.name = name
        self.find = find
        self.in_place = name == operator.in_place
        self.keeps_channels_last = operator.keeps_channels_last
        for role in operator.lies_as:
            self.lies_as[self.n_lies_as] = operator.kernel_operands.index(role)
            self.n_lies_as += 1
        self.has_layout = self.n_lies_as > 0 or self.keeps_channels_last
        self.n_switches = len(operator.switches)
        self.outputs = operator.outputs
        roles = (*operator.inputs, *operator.outputs, *(a.role for a in operator.attributes))
        self.names = {role: role for role in roles}
        places = []
        for role in operator.outputs if self.in_place else ():
            taken = operator.overwritten.get(role)
            places.append(-1 if taken is None else operator.kernel_operands.index(taken))
            self.names[role] = taken or role
        self.overwritten = tuple(places)
        self.operand_names = (*operator.kernel_operands, *operator.outputs)
        self.scalar_defaults = tuple(a.default for a in operator.scalars)
        self.nullable = tuple(a.nullable for a in operator.scalars)
        self.switches = operator.switches
        self.default_switches = tuple(a.default for a in self.switches)
        self.default_code = handle.learn_switches(self.default_switches) if operator.switches else 0
        if len(operator.switches) > MOST_SWITCHES or len(operator.inputs) > MOST_INPUTS:
            raise ValueError(f"{name} has {len(operator.inputs)} inputs and "
                             f"{len(operator.switches)} switches, at most {MOST_INPUTS} and "
                             f"{MOST_SWITCHES} are possible")
        self.own_function.signature.n_positional = n_positional
        self.own_function.signature.n_required = n_required
        self.parameter_names = tuple(sys.intern(parameter) for parameter in parameters)
        places = self.places_of(operator)
        for slot in sorted(places.values()):
            self.used_slots[self.n_used] = slot
            self.n_used += 1
        for index, parameter in enumerate(self.parameter_names):
            self.own_function.signature.slots[<int>index] = places[parameter]
        self.defaults.n_numbers = handle.n_scalars
        for index, default in enumerate(self.scalar_defaults):
            if default is not REQUIRED:
                take_number(self, index, default, &self.defaults)

    @staticmethod
    def places_of(operator):
        """The slot of every parameter."""
        places = {"out": OUT}
        places |= {role: FIRST + k for k, role in enumerate(operator.kernel_operands)}
        if operator.option_form is not None:
            places[operator.option_form[0].role] = OPTION
        places |= {a.role: NUMBERS + k for k, a in enumerate(operator.scalars)}
        return places | {a.role: SWITCHES + k for k, a in enumerate(operator.switches)}

    def function(self, str module not None, str doc not None):
        """The form as a function that is called without a frame or a dictionary of its own.

        Parameters
        ----------
        module : str
            Where it can be imported from.
        doc : str
            Its docstring, after a line with its signature, one of two hyphens, and an empty one.
        """
        self.c_name, self.c_doc = self.name.encode(), doc.encode()
        self.made = new_function(&self.own_function, self, module, self.c_name, self.c_doc,
                                 <void *>called)
        return self.made

    def __reduce__(self):
        return self.find, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        if name != self.name or self.made is None:
            raise AttributeError(name)
        return self.made

    def take_numbers_by(self, FunctionalHandle other not None, int slot):
        """Let `other` take the call where the operand in a slot is a number."""
        self.number_form, self.number_slot = other, slot
        others = other.places_of(other.handle.operator)
        self.moves = tuple((index, others[role]) for role, index
                           in self.places_of(self.handle.operator).items() if index != OPTION)

    def take_option_by(self, FunctionalHandle other not None, str option not None,
                       tuple choices not None, str role not None):
        """Let `other` take calls in which `option` is one of `choices`, as its `role`."""
        self.option_form, self.option_name, self.option_choices = other, option, choices
        others = other.places_of(other.handle.operator) | {option: 0}
        others[option] = others[role]
        self.option_moves = tuple((index, others[name]) for name, index
                                  in self.places_of(self.handle.operator).items())

    cdef object call_slots(self, PyObject **arguments):
        cdef operand_t operands[MOST_SMALL]
        cdef char *addresses[MOST_SMALL]
        if (self.handle.is_variadic or self.handle.makes_list
                or self.handle.n_inputs + self.handle.n_outputs > MOST_SMALL):
            return self.call_large(arguments)
        return self.call_in(arguments, operands, addresses)

    cdef object call_large(self, PyObject **arguments):
        cdef operand_t operands[SEVERAL]
        cdef char *addresses[SEVERAL]
        return self.call_in(arguments, operands, addresses)

    cdef inline object call_in(self, PyObject **arguments, operand_t *operands, char **addresses):
        """Run a call, with room for the descriptions and the addresses of its operands."""
        cdef request_t request
        cdef CompiledCall plan
        cdef int index, n_inputs, n_outputs = self.handle.n_outputs
        cdef bint tensors = False
        cdef object switches = None
        cdef list _kept
        if self.option_form is not None and arguments[OPTION] != NULL:
            if <object>arguments[OPTION] is not None:
                return self.call_option_form(arguments)
        if self.number_form is not None and arguments[self.number_slot] != NULL:
            if is_number(<object>arguments[self.number_slot]):
                return self.call_number_form(arguments)
        if self.n_switches:
            switches = self.switches_of(arguments)
        _kept = plain_numbers(self, arguments)
        request.operands = operands
        n_inputs = self.read_inputs(arguments, operands, &tensors)
        if n_inputs == FOREIGN:
            return self.call_foreign(arguments, switches)
        if self.handle.makes_list:
            n_outputs = self.count_outputs(operands, switches)
        if n_outputs > 1 or self.handle.makes_list:
            if n_outputs > SEVERAL - n_inputs:
                return self.call_foreign(arguments, switches)
            if arguments[OUT] != NULL and <object>arguments[OUT] is not None:
                return self.call_foreign(arguments, switches)
            for index in range(n_outputs):
                take_absent(&operands[n_inputs + index])
        elif arguments[OUT] == NULL or <object>arguments[OUT] is None:
            take_absent(&operands[n_inputs])
        elif not read_operand(<object>arguments[OUT], &operands[n_inputs], &tensors):
            return self.call_foreign(arguments, switches)
        self.read_options(&request, arguments, switches)
        request.n_inputs, request.n_outputs = n_inputs, n_outputs
        if switches is None:
            switches = self.default_switches
        plan = find_plan(self.handle, &request, self.names, None, switches)
        out = None if arguments[OUT] == NULL else <object>arguments[OUT]
        if out is not None:
            run_on_operands(plan, &request, addresses)
            if tensors and is_tensor(out):
                tell_written(out)
            return out
        if tensors and self.has_layout and self.is_laid_out_otherwise(operands, n_inputs):
            out = self.new_laid_out(plan, operands, n_inputs, switches)
            plan = find_plan(self.handle, &request, self.names, None, switches)
        else:
            out = new_outputs(plan, operands, tensors, self.handle.makes_list)
        run_on_operands(plan, &request, addresses)
        return out

    cdef bint is_laid_out_otherwise(self, const operand_t *operands, int n_inputs) noexcept:
        """Whether PyTorch may not lay the result out densely in the order of its dimensions."""
        if not self.keeps_channels_last:
            return lies_otherwise(operands, self.lies_as, self.n_lies_as)
        return have_channels_last(operands, n_inputs if self.handle.is_variadic else 1)

    cdef object new_laid_out(self, CompiledCall plan, operand_t *operands, int n_inputs,
                             tuple switches):
        """Tensors for all results, the first in PyTorch's layout."""
        cdef int index
        made = []
        for index in range(plan.n_outputs):
            describe_output(plan, index, &operands[n_inputs + index])
            if index == 0:
                self.lay_out(operands, n_inputs, switches)
            if operands[n_inputs + index].ndim == ABSENT:
                made.append(None)
            else:
                made.append(new_tensor(&operands[n_inputs + index]))
        return made[0] if plan.n_outputs == 1 else tuple(made)

    cdef int lay_out(self, operand_t *operands, int n_inputs, tuple switches) except -1:
        """Give the result, which is described as dense, the strides that PyTorch gives it."""
        cdef operand_t *out = &operands[n_inputs]
        if not self.keeps_channels_last:
            lay_out_alike(operands, self.lies_as, self.n_lies_as, out)
        elif out.ndim == operands[0].ndim:
            lay_out_channels_last(out)
        else:
            stack_channels_last(&operands[0], switches[0] % out.ndim, out)
        return 0

    cdef int read_inputs(self, PyObject **arguments, operand_t *operands, bint *tensors) except -2:
        """Read all inputs, lists item by item; gives how many there are, FOREIGN if one cannot be
        read in place."""
        cdef int index, n_single = self.handle.n_inputs
        if self.handle.ends_lists:
            return FOREIGN
        if self.handle.is_variadic:
            n_single -= 1
        for index in range(n_single):
            if arguments[index] == NULL or <object>arguments[index] is None:
                if not self.may_lack(index):
                    return FOREIGN
                take_absent(&operands[index])
                operands[index].data = NULL
            elif not read_operand(<object>arguments[index], &operands[index], tensors):
                return FOREIGN
        if self.handle.is_variadic:
            return self.read_list(<object>arguments[n_single], operands, n_single, tensors)
        return n_single

    cdef int read_list(self, object arguments, operand_t *operands, int n_single,
                       bint *tensors) except -2:
        cdef int index
        if type(arguments) is not list and type(arguments) is not tuple:
            return FOREIGN
        if self.handle.operator.absent_items:
            return FOREIGN
        if not 0 < len(arguments) <= SEVERAL - n_single - self.handle.n_outputs:
            return FOREIGN
        for index in range(<int>len(arguments)):
            if not read_operand(arguments[index], &operands[n_single + index], tensors):
                return FOREIGN
        return n_single + <int>len(arguments)

    cdef bint may_lack(self, int slot):
        """Whether the operand in a slot may be left out."""
        return self.operand_names[slot] in self.handle.operator.optional

    cdef object call_number_form(self, PyObject **arguments):
        """Hand a call over whose second operand is a number."""
        cdef PyObject *moved[SLOTS]
        cdef FunctionalHandle other = self.number_form
        cdef int index, to
        memset(moved, 0, sizeof(moved))
        for index, to in self.moves:
            moved[to] = arguments[index]
        if self.in_place:
            moved[OUT] = moved[FIRST]
        return other.call_slots(moved)

    cdef object call_option_form(self, PyObject **arguments):
        """Hand a call over that has the option."""
        cdef PyObject *moved[SLOTS]
        cdef int index, to
        option = <object>arguments[OPTION]
        if option not in self.option_choices:
            raise invalid(f"{self.option_name} is {shown(option)}, must be None or one of "
                          f"{', '.join(map(repr, self.option_choices))}")
        memset(moved, 0, sizeof(moved))
        for index, to in self.option_moves:
            moved[to] = arguments[index]
        return self.option_form.call_slots(moved)

    cdef object outputs_in_place(self, PyObject **arguments):
        """The inputs that results take the place of, and None for what is made."""
        cdef list found = []
        cdef int slot
        for slot in self.overwritten:
            found.append(None if slot < 0 or arguments[slot] == NULL else <object>arguments[slot])
        return tuple(found)

    cdef object switches_of(self, PyObject **arguments):
        """The switches as a tuple; `None` if none of them was given."""
        cdef int index
        cdef bint is_given = False, as_seen = self.seen_switches is not None
        for index in range(self.n_switches):
            is_given |= arguments[SWITCHES + index] != NULL
            as_seen &= arguments[SWITCHES + index] == self.seen_given[index]
        if not is_given:
            return None
        if as_seen:
            return self.seen_switches
        return self.read_given_switches(arguments)

    cdef tuple read_given_switches(self, PyObject **arguments):
        """Read switches that are not those of the latest call."""
        cdef int index
        found = []
        for index in range(self.n_switches):
            value = self.default_switches[index]
            if arguments[SWITCHES + index] != NULL:
                value = as_switch(self, self.switches[index], <object>arguments[SWITCHES + index])
            found.append(value)
        switches = self.latest_if_equal(tuple(found))
        self.remember(arguments, switches)
        return switches

    cdef int remember(self, PyObject **arguments, tuple switches) except -1:
        """Keep what was given and what it was read as, if the same objects always mean the same."""
        cdef int index
        kept = []
        for index in range(self.n_switches):
            if arguments[SWITCHES + index] == NULL:
                continue
            value = <object>arguments[SWITCHES + index]
            if value is not switches[index] and not is_constant(value):
                return 0
            kept.append(value)
        self.seen_switches = None  # never those of one call with what another was given
        for index in range(self.n_switches):
            self.seen_given[index] = arguments[SWITCHES + index]
        self.seen_kept = tuple(kept)
        self.seen_switches = switches
        return 0

    cdef tuple latest_if_equal(self, tuple found):
        """The switches of the latest call if these are the same ones: their number is known then.

        What `as_switch` gives is equal only where its types are too.
        """
        return self.latest_switches if found == self.latest_switches else found

    cdef int count_outputs(self, const operand_t *input, tuple switches) except -1:
        """Number of results in the list that a call makes."""
        cdef tuple values = self.default_switches if switches is None else switches
        if values is self.counted_switches and have_same_shape(input, &self.counted_input):
            return self.latest_count
        self.counted_switches = None
        first = self.handle.operator.kernel_operands[0]
        count = self.count_of({first: numbers_of(input.shape, input.ndim)}, values)
        self.latest_count, self.counted_input = count, input[0]
        self.counted_switches = values
        return count

    cdef object count_of(self, dict shapes, tuple switches):
        operator = self.handle.operator
        return operator.makes(shapes, {a.role: v for a, v in zip(operator.switches, switches)})

    def call(self, inputs not None, outputs not None, numbers not None, switches):
        """Run on arrays that kernels can read: all inputs in the kernels' order, lists taken apart,
        and outputs, of which those that are None are made.

        Returns
        -------
        list of array
            The outputs.
        """
        cdef aclOpExecutor executor = self.planned(inputs, outputs, numbers, switches, None, None,
                                                   self.names)
        cdef char *addresses[MANY]
        cdef int index
        executor.make_outputs()
        for index in range(executor.request.n_inputs + executor.request.n_outputs):
            addresses[index] = executor.request.operands[index].data
        run_with_own_workspace(executor.planned, addresses, executor.request.numbers)
        return executor.bound[executor.request.n_inputs:]

    def described(self, numbers not None, switches, dtypes not None):
        """Options as a plan knows them: facts of each number, its forms, and the switches.

        `dtypes` are those of the inputs.
        """
        cdef request_t request
        cdef operand_t operands[SEVERAL]
        cdef int index
        request.operands = operands
        request.n_inputs = min(len(dtypes), <int>SEVERAL)
        request.n_numbers = self.handle.n_scalars
        for index in range(request.n_inputs):
            operands[index].dtype = dtypes[index]
        forms = []
        for index, value in enumerate(numbers):
            take_number(self, index, plain_number(self, index, value), &request)
            found = &request.numbers[NUMBER_FORMS * index]
            forms.append((found[0].real, found[1].real, found[2].whole))
        return (number_facts(&request), forms,
                self.default_switches if switches is None else switches)

    cdef int read_options(self, request_t *request, PyObject **arguments,
                          object switches) except -1:
        cdef int index
        request.operator_id = self.handle.id
        request.n_inputs, request.n_outputs = self.handle.n_inputs, self.handle.n_outputs
        request.materialize = request.strategy = INHERIT
        request.makes_absent, request.pair = True, 0
        request.n_numbers = self.handle.n_scalars
        for index in range(self.handle.n_scalars):
            if arguments[NUMBERS + index] == NULL:
                self.take_default(request, index)
            else:
                take_number(self, index, <object>arguments[NUMBERS + index], request)
        self.read_switches(request, switches)
        return 0

    cdef void take_default(self, request_t *request, int index) noexcept:
        request.facts[index] = self.defaults.facts[index]
        memcpy(&request.numbers[NUMBER_FORMS * index], &self.defaults.numbers[NUMBER_FORMS * index],
               NUMBER_FORMS * sizeof(kernel_number))

    cdef int read_switches(self, request_t *request, object switches) except -1:
        cdef int code
        if switches is None:
            request.switches = self.default_code
            return 0
        if switches is self.latest_switches:
            request.switches = self.latest_code
            return 0
        request.switches = code = self.handle.switch_code(switches)
        if code != UNSEEN:
            self.latest_switches, self.latest_code = None, code
            self.latest_switches = switches
        return 0

    cdef object call_foreign(self, PyObject **arguments, object switches):
        """Run a call with an operand whose memory kernels cannot read as it is, or a list."""
        cdef int index
        if self.recorded is not None and self.is_recorded(arguments):
            return self.record(arguments, switches)
        operands, numbers = [], []
        for index in range(self.handle.n_inputs):
            operands.append(None if arguments[index] == NULL else <object>arguments[index])
        for index in range(self.handle.n_scalars):
            numbers.append(self.scalar_defaults[index] if arguments[NUMBERS + index] == NULL
                           else <object>arguments[NUMBERS + index])
        out = None if arguments[OUT] == NULL else <object>arguments[OUT]
        if self.differentiable is None:
            arrays.prepare_for(operands, out)
        if self.differentiable is not None:
            options = self.default_switches if switches is None else switches
            result = self.differentiable(self.handle.operator, operands, out, (*numbers, *options))
            if result is not NotImplemented:
                return result
        return arrays.call_foreign(self, operands, out, numbers, switches)

    cdef bint is_recorded(self, PyObject **arguments) noexcept:
        """Whether a call is plain but for the gradient that is wanted of it."""
        cdef operand_t found
        cdef int index
        cdef bint tracked = False
        if arguments[OUT] != NULL and <object>arguments[OUT] is not None:
            return False
        for index in range(self.handle.n_inputs):
            if arguments[index] == NULL or not read_tracked(
                <object>arguments[index], &found, &tracked
            ):
                return False
        return tracked and records_plainly()

    cdef object record(self, PyObject **arguments, object switches):
        """Run a call that autograd is to know of."""
        cdef int index
        args = []
        for index in range(self.handle.n_inputs):
            args.append(<object>arguments[index])
        for index in range(self.handle.n_scalars):
            args.append(self.scalar_defaults[index] if arguments[NUMBERS + index] == NULL
                        else <object>arguments[NUMBERS + index])
        args.extend(self.default_switches if switches is None else switches)
        return self.recorded(*args)

    cdef aclOpExecutor planned(self, inputs, outputs, numbers, switches, materialize, strategy,
                               names):
        """An executor for these arrays, planned and bound; missing outputs are made."""
        cdef aclOpExecutor executor = new_executor()
        cdef int index, n_inputs = len(inputs), count = n_inputs + len(outputs)
        executor.handle, executor.origin = self.handle, self.name
        executor.make_room(n_inputs, len(outputs))
        executor.names = self.names_of(inputs, len(outputs))
        executor.order = ()
        exact = []
        for index, value in enumerate(numbers):
            exact.append(plain_number(self, index, value))
        for index, array in enumerate((*inputs, *outputs)):
            if array is None:
                take_absent(&executor.request.operands[index])
            else:
                read_or_refuse(executor.names[index], array, &executor.request.operands[index])
        executor.request.operator_id = self.handle.id
        executor.request.makes_absent = True
        executor.request.n_numbers = self.handle.n_scalars
        for index in range(self.handle.n_scalars):
            take_number(self, index, exact[index], executor.request)
        if switches is not None:
            read = []
            for attribute, value in zip(self.handle.operator.switches, switches):
                read.append(as_switch(self, attribute, value))
            switches = tuple(read)
        self.read_switches(executor.request, switches)
        if materialize is not None:
            executor.request.materialize = bool(materialize)
        if strategy is not None:
            executor.request.strategy = strategy
        executor.switches = self.default_switches if switches is None else switches
        executor.planned = find_plan(self.handle, executor.request, names, None,
                                     executor.switches)
        for index in range(n_inputs, count):
            if outputs[index - n_inputs] is None:
                describe_output(executor.planned, index - n_inputs,
                                &executor.request.operands[index])
        bound = list(inputs)
        bound.extend(outputs)
        executor.bound = bound
        executor.arrays, executor.repeatable = ArrayForm(), True
        executor.arrays.form = self
        return executor

    def outputs_of(self, inputs not None, switches):
        """The roles of the results: numbered where they are a list, as many as the call makes.

        Parameters
        ----------
        inputs : sequence of array
            In the kernels' order, lists taken apart.
        switches : tuple or None
            None for the defaults.
        """
        if not self.handle.makes_list:
            return self.outputs
        operator = self.handle.operator
        values = self.default_switches if switches is None else switches
        shapes = []
        for one in inputs:
            shapes.append(None if one is None else one.shape)
        count = self.count_of(operator.by_role(shapes), values)
        return operator.sized(count).outputs

    cdef tuple names_of(self, inputs, int n_outputs):
        """A name for each operand; the tensors of a list are numbered."""
        cdef int index
        operator = self.handle.operator
        outputs = operator.outputs
        if self.handle.makes_list:
            outputs = operator.sized(n_outputs).outputs
        if not self.handle.is_variadic:
            return (*operator.kernel_operands, *outputs)
        found = []
        for role, one in operator.by_role(inputs).items():
            if role not in operator.lists:
                found.append(role)
                continue
            for index in range(len(one)):
                found.append(f"{role}[{index}]")
            if operator.is_ended(role):
                found.append(role)
        return (*found, *outputs)

    def bind(self, inputs not None, outputs not None, numbers not None, switches,
             arrays_of_caller, outputs_of_caller not None, materialize=None, strategy=None,
             description=None, entry=None):
        """An executor for these arrays, planned and bound; see `aclnn.executor`.

        `entry` is that of the C-shaped function that it is made for, by whose names operands and
        options go then.
        """
        cdef aclOpExecutor executor
        words = {} if entry is None else entry.words(self.handle.operator.outputs)
        executor = self.planned(
            inputs, outputs, numbers, switches, materialize, strategy, {**self.names, **words})
        if entry is not None:
            self.spell(executor, entry, words)
        executor.given, executor.arrays.description = list(outputs_of_caller), description
        executor.arrays.places = self.places_for(entry)
        for one in arrays_of_caller:
            if not isinstance(one, np.ndarray):
                executor.arrays.kind = arrays.library_of(one)
                break
        return executor

    cdef tuple places_for(self, entry):
        """The places of inputs in the order in which callers give them; None where they lie so."""
        operands = self.handle.operator.kernel_operands
        roles = list(self.handle.operator.positional)
        if entry is not None:
            roles = []
            for parameter in entry.parameters:
                roles.append(parameter.role)
        places = []
        for role in (*roles, *operands):
            if role in operands and operands.index(role) not in places:
                places.append(operands.index(role))
        in_order = places == list(range(len(operands)))
        return None if in_order or self.handle.is_variadic else tuple(places)

    cdef int spell(self, aclOpExecutor executor, entry, dict words) except -1:
        """Have an executor go by the names of a C-shaped function."""
        operands, outputs = self.handle.operator.kernel_operands, self.handle.operator.outputs
        taken = entry.overwritten(outputs)
        names, overwritten = [], []
        for name in executor.names[:executor.request.n_inputs]:
            role, bracket, index = name.partition("[")
            names.append(f"{words.get(role, role)}{bracket}{index}")
        if self.handle.makes_list:
            for index in range(executor.request.n_outputs):
                names.append(f"{words[outputs[0]]}[{index}]")
        else:
            for role in outputs:
                names.append(words.get(role, role))
        for role in outputs if taken else ():
            overwritten.append(operands.index(taken[role]) if role in taken else -1)
        executor.origin = entry.name
        executor.arrays.words, executor.arrays.roles = words, executor.names
        executor.arrays.overwritten = tuple(overwritten) if taken else None
        executor.names = tuple(names)
        return 0


cdef inline bint read_operand(object value, operand_t *operand, bint *tensors) noexcept:
    """Read an array or a tensor; `tensors` says whether there was one of the latter."""
    if read_array(value, operand):
        return True
    if not read_tensor(value, operand):
        return False
    tensors[0] = True
    return True


cdef inline int run_on_operands(CompiledCall plan, request_t *request, char **addresses) except -1:
    cdef int index
    for index in range(request.n_inputs + request.n_outputs):
        addresses[index] = request.operands[index].data
    return run_with_own_workspace(plan, addresses, request.numbers)


cdef bint have_same_shape(const operand_t *a, const operand_t *b) noexcept:
    cdef int axis
    if a.ndim != b.ndim:
        return False
    for axis in range(a.ndim):
        if a.shape[axis] != b.shape[axis]:
            return False
    return True


cdef object new_outputs(CompiledCall plan, operand_t *operands, bint tensors, bint as_list):
    """Arrays or tensors for all of a plan's results: one, or a tuple of them."""
    cdef int index
    if plan.n_outputs == 1 and not as_list:
        return new_output(plan, 0, &operands[plan.n_inputs], tensors)
    made = []
    for index in range(plan.n_outputs):
        made.append(new_output(plan, index, &operands[plan.n_inputs + index], tensors))
    return tuple(made)


# --- Arguments ----------------------------------------------------------------------------------

cdef object call_with_names(object form, PyObject *const *values, Py_ssize_t n_values,
                            PyObject *names):
    """Call a form's function: `values` by position, then those with `names`."""
    cdef FunctionalHandle handle = <FunctionalHandle>form
    cdef PyObject *value[SLOTS]
    cdef int index
    for index in range(handle.n_used):
        value[handle.used_slots[index]] = NULL
    take_arguments(handle.name, handle.parameter_names, &handle.own_function.signature, values,
                   n_values, names, value)
    cdef object outputs
    if handle.in_place and handle.handle.n_outputs > 1:
        outputs = handle.outputs_in_place(value)
        value[OUT] = <PyObject *>outputs
    elif handle.in_place:
        value[OUT] = value[FIRST]
    return handle.call_slots(value)


cdef PyObject *called(PyObject *form, PyObject *const *values, Py_ssize_t n_values,
                      PyObject *names) noexcept:
    """A form's function: `call_with_names`, whose errors are in the caller's words."""
    cdef PyObject *result = (<fastcall_t>call_with_names)(form, values, n_values, names)
    if result == NULL:
        tell_refused(<FunctionalHandle>form, values, n_values, names)
    return result


cdef void tell_refused(FunctionalHandle handle, PyObject *const *values, Py_ssize_t n_values,
                       PyObject *names) noexcept:
    cdef Py_ssize_t k
    error = take_error()
    if isinstance(error, AclnnError):
        try:
            value = {}
            for k in range(min(n_values, len(handle.parameter_names))):
                value[handle.parameter_names[k]] = <object>values[k]
            for k in range(0 if names == NULL else PyTuple_GET_SIZE(names)):
                value[<object>PyTuple_GET_ITEM(names, k)] = <object>values[n_values + k]
            error = refusals.reworded(handle.name, error, value, handle.in_place)
            leave_out(error)
        except Exception as defect:
            error = defect
    put_error(error)


cdef bint is_number(object value):
    """Whether an operand is a number, and no array: Python's own, or NumPy's scalars."""
    return (is_plain(value) or isinstance(value, (float, int, np.generic))
            or is_of_run(value))


cdef inline bint is_plain(object value) noexcept:
    """Whether an option is of Python's own types; `in` would compare them by their methods."""
    return type(value) is float or type(value) is int or type(value) is bool


cdef inline bint is_of_run(object value) noexcept:
    """Whether it stands for a float of a traced function, whose value only other calls ask for."""
    return PyType_IsSubtype((<PyObject *>value).ob_type, <PyTypeObject *>NumberOfRun)


cdef bint is_constant(object value):
    """Whether an object always means the same option: numbers, names, dtypes."""
    kind = type(value)
    if is_plain(value) or kind is str:
        return True
    if isinstance(value, type):
        return issubclass(value, np.generic)
    return isinstance(value, np.dtype) or (kind.__name__ == "dtype" and kind.__module__ == "torch")


cdef int take_number(FunctionalHandle handle, int index, object value,
                     request_t *request) except -1:
    """Take an option; None stands for the default, or for -1 where there is none."""
    cdef int overflow = 0
    cdef long long whole
    if type(value) is float:
        put_real(handle.handle, request, index, PyFloat_AS_DOUBLE(value), ACL_FLOAT)
        return 0
    if value is None and index < handle.handle.n_scalars:
        if handle.scalar_defaults[index] is None:
            put_absent(request, index)
            return 0
        if handle.nullable[index]:
            return take_number(handle, index, handle.scalar_defaults[index], request)
    if type(value) is bool:
        put_whole(request, index, <double>(value is True), value is True, ACL_BOOL)
        return 0
    if type(value) is int:
        whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            put_number(request, index, large_integer(handle, value, request), ACL_FLOAT)
        elif -EXACT <= whole <= EXACT:
            put_whole(request, index, fp_rounded_whole(whole), whole, ACL_INT64)
        else:
            put_whole(request, index, as_float_once(value), whole, ACL_INT64)
        return 0
    if is_of_run(value):
        put_real(handle.handle, request, index, float(value), ACL_FLOAT)
        return 0
    raise not_real(handle, index, value)


cdef object not_real(FunctionalHandle handle, int index, object value):
    role = handle.handle.scalar_roles[index]
    return wrong_kind(f"{role} is {shown(value)}, must be a real number")


cdef list plain_numbers(FunctionalHandle handle, PyObject **arguments):
    """Replace options that are no floats or ints by such; the list returned keeps these alive.

    Converting may run anything, and is therefore done before arrays are looked at.
    """
    cdef int index
    cdef list kept = None
    for index in range(handle.handle.n_scalars):
        if arguments[NUMBERS + index] == NULL:
            continue
        value = <object>arguments[NUMBERS + index]
        if value is None or is_plain(value) or is_of_run(value):
            continue
        value = plain_number(handle, index, value)
        kept = [] if kept is None else kept
        kept.append(value)
        arguments[NUMBERS + index] = <PyObject *>value
    return kept


cdef object plain_number(FunctionalHandle handle, int index, object value):
    if value is None or type(value) is float or type(value) is bool:
        return value
    try:
        whole = as_int(value)
        return as_real(value) if whole is None else whole
    except Exception:  # whatever its __float__ raises
        raise not_real(handle, index, value) from None


cdef double large_integer(FunctionalHandle handle, object value,
                          const request_t *request) except? -1.0:
    """An integer beyond what doubles hold exactly, rounded once, to the type it is computed in."""
    cdef int index
    if handle.handle.operator.scalars_as_double:
        for index in range(request.n_inputs):
            if request.operands[index].dtype == aclDataType.ACL_DOUBLE:
                return as_real(value)
    return as_float_once(value)


cdef inline bint is_small(object value):
    """Whether it is one of Python's own integers, far from the limits of 64 bits."""
    return type(value) is int and -LARGE < value < LARGE


cdef bint are_small(tuple values):
    for one in values:
        if not is_small(one):
            return False
    return True


cdef object as_switch(FunctionalHandle handle, object attribute, object value):
    """A switch as Python reads it."""
    cdef str kind = attribute.kind
    if kind == "int" and is_small(value):
        return value
    if kind == "ints" and is_small(value):
        return (value,)
    if kind == "ints" and type(value) is list:
        value = tuple(value)
    if kind == "ints" and type(value) is tuple and are_small(value):
        return value
    if kind == "bool" and type(value) is bool:
        return value
    if kind == "bool":
        return as_truth(attribute.role, value)
    if kind == "str":
        if type(value) is str:
            return value
        if not isinstance(value, str):
            choices = " or ".join(map(repr, attribute.choices))
            raise wrong_kind(f"{attribute.role} is {shown(value)}, must be {choices}")
        return plain(value)
    return as_option(attribute.role, attribute, value)
