/* The interpreter: the one that runs in the process, or one that is started at the first call.

   The library is not linked with libpython, whose functions it looks up: extension modules find their
   symbols only in an interpreter that the whole process sees. */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aclnn/opdev/op_errno.h"
#include "library.h"
#include "stack.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define PYTHON_VERSION TEXT(PY_MAJOR_VERSION) "." TEXT(PY_MINOR_VERSION)
#ifdef Py_GIL_DISABLED
#define PYTHON_ABI PYTHON_VERSION "t"
#else
#define PYTHON_ABI PYTHON_VERSION
#endif
#define LIBPYTHON "libpython" PYTHON_ABI ".so.1.0"
#define MODULE "aclnn.capi._call_table"

const aclnn_call_table *aclnn_calls;

/* --- Python's functions ---------------------------------------------------------------------------- */

#define FUNCTIONS(F)                                                                                \
  F(Py_IsInitialized) F(PyGILState_Check) F(PyEval_RestoreThread) F(Py_GetVersion) F(PyPreConfig_InitIsolatedConfig) F(Py_PreInitialize)        \
  F(PyConfig_InitIsolatedConfig) F(PyConfig_SetBytesString) F(PyConfig_Clear)                       \
  F(PyWideStringList_Append) F(Py_InitializeFromConfig) F(PyStatus_Exception) F(PyGILState_Ensure)  \
  F(PyGILState_Release) F(PyEval_SaveThread) F(PyImport_ImportModule) F(PyCapsule_Import)           \
  F(PyErr_Fetch) F(PyErr_NormalizeException) F(PyErr_Clear) F(PyObject_Str) F(PyUnicode_AsUTF8)     \
  F(PyUnicode_DecodeFSDefault) F(PySys_GetObject) F(PyList_Insert) F(PyList_Append)                 \
  F(Py_DecRef)

static struct {
#define F(name) __typeof__(&name) name;
  FUNCTIONS(F)
#undef F
} py;

static int look_up(void *handle) {
#define F(name)                                                       \
  *(void **)&py.name = dlsym(handle, #name);                          \
  if (!py.name) {                                                     \
    aclnn_fail(0, "the Python in this process has no " #name);        \
    return -1;                                                        \
  }
  FUNCTIONS(F)
#undef F
  return 0;
}

/* --- Where things are ------------------------------------------------------------------------------ */

typedef struct places {
  char root[PATH_MAX];        /* the folder that has the package `aclnn` */
  char interpreter[PATH_MAX]; /* its executable */
  char library[PATH_MAX];     /* its libpython */
  char sought[2048];          /* what was looked for, for the message */
} places;

static int exists(const char *path) {
  struct stat found;
  return stat(path, &found) == 0;
}

__attribute__((format(printf, 2, 3))) static int set_path(char *path, const char *format, ...) {
  va_list given;
  int length;
  va_start(given, format);
  length = vsnprintf(path, PATH_MAX, format, given);
  va_end(given);
  return length >= 0 && length < PATH_MAX;
}

/* Drops the last part of a path; 0 where there is none. */
static int go_up(char *path) {
  char *slash = strrchr(path, '/');
  if (!slash || slash == path) return 0;
  *slash = 0;
  return 1;
}

static void note(places *at, const char *path) {
  size_t used = strlen(at->sought);
  snprintf(at->sought + used, sizeof at->sought - used, "%s%s", used ? ", " : "", path);
}

/* The package's root: the library lies in aclnn/capi/home/lib64. */
static int find_root(places *at) {
  Dl_info found;
  char real[PATH_MAX];
  if (!dladdr((void *)find_root, &found) || !found.dli_fname || !realpath(found.dli_fname, real)) return 0;
  for (int level = 0; level < 5; level++)
    if (!go_up(real)) return 0;
  return set_path(at->root, "%s", real);
}

/* `home` of a virtual environment, whose executable is in `folder`; 0 where it is none. */
static int read_home(const char *folder, char *home) {
  char path[PATH_MAX], line[PATH_MAX + 16];
  FILE *file;
  int found = 0;
  if (!set_path(path, "%s/../pyvenv.cfg", folder)) return 0;
  file = fopen(path, "re");
  if (!file) return 0;
  while (!found && fgets(line, sizeof line, file)) {
    char *value = line + strspn(line, " \t");
    if (strncmp(value, "home", 4)) continue;
    value += 4;
    value += strspn(value, " \t");
    if (*value != '=') continue;
    value++;
    value += strspn(value, " \t");
    value[strcspn(value, "\r\n")] = 0;
    found = set_path(home, "%s", value);
  }
  fclose(file);
  return found;
}

/* libpython beside an installation's folder of executables. */
static int find_beside(places *at, const char *bin) {
  static const char *const folders[] = {"lib", "lib64", "lib/" TEXT(ACLNN_MULTIARCH)};
  for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
    if (!set_path(at->library, "%s/../%s/" LIBPYTHON, bin, folders[k])) continue;
    note(at, at->library);
    if (exists(at->library)) return 1;
  }
  return 0;
}

/* Takes an interpreter if there is one of that name, and its libpython. */
static int take_interpreter(places *at, const char *executable) {
  char folder[PATH_MAX], home[PATH_MAX], real[PATH_MAX];
  if (access(executable, X_OK)) {
    note(at, executable);
    return 0;
  }
  if (!set_path(at->interpreter, "%s", executable) || !set_path(folder, "%s", executable)) return 0;
  if (!go_up(folder)) return 0;
  if (read_home(folder, home) && find_beside(at, home)) return 1;
  if (realpath(executable, real) && go_up(real) && find_beside(at, real)) return 1;
  return 0;
}

/* What a build in place has written down, as its place says nothing. */
static int take_noted(places *at) {
  char path[PATH_MAX], line[PATH_MAX];
  FILE *file;
  int found = 0;
  if (!set_path(path, "%s/aclnn/capi/home/interpreter", at->root)) return 0;
  file = fopen(path, "re");
  if (!file) return 0;
  if (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\r\n")] = 0;
    found = take_interpreter(at, line);
  }
  fclose(file);
  return found;
}

/* The interpreter above the package: of a virtual environment, or of an installation. */
static int take_above(places *at) {
  char prefix[PATH_MAX], path[PATH_MAX];
  if (!set_path(prefix, "%s", at->root)) return 0;
  for (int level = 0; level < 3 && go_up(prefix); level++) continue; /* lib/python3.x/site-packages */
  if (set_path(path, "%s/pyvenv.cfg", prefix) && exists(path))
    return set_path(path, "%s/bin/python", prefix) && take_interpreter(at, path);
  if (set_path(path, "%s/bin/python" PYTHON_ABI, prefix) && exists(path) && take_interpreter(at, path))
    return 1;
  return 0;
}

/* One of that version on the path. */
static int take_on_path(places *at) {
  const char *paths = getenv("PATH");
  char path[PATH_MAX];
  for (const char *start = paths ? paths : "/usr/bin"; *start;) {
    size_t length = strcspn(start, ":");
    if (length && set_path(path, "%.*s/python" PYTHON_ABI, (int)length, start) && exists(path) &&
        take_interpreter(at, path))
      return 1;
    start += length + (start[length] == ':');
  }
  return 0;
}

static int find_interpreter(places *at) {
  const char *wanted = getenv("ACLNN_PYTHON");
  if (wanted && *wanted) return take_interpreter(at, wanted);
  return take_noted(at) || take_above(at) || take_on_path(at);
}

/* --- Start ----------------------------------------------------------------------------------------- */

static int fail_with_status(PyStatus status, const places *at) {
  return aclnn_fail(-1, "the interpreter %s cannot start: %s", at->interpreter,
                    status.err_msg ? status.err_msg : "it ended");
}

/* An interpreter that leaves signals, the locale, the environment and standard streams alone. */
static int initialize(const places *at) {
  PyPreConfig before;
  PyConfig config;
  PyStatus status;
  py.PyPreConfig_InitIsolatedConfig(&before);
  before.utf8_mode = 1; /* whatever the locale is, which is not read */
  status = py.Py_PreInitialize(&before);
  if (py.PyStatus_Exception(status)) return fail_with_status(status, at);
  py.PyConfig_InitIsolatedConfig(&config);
  config.install_signal_handlers = 0;
  config.pathconfig_warnings = 0;
  config.write_bytecode = 1;
  status = py.PyWideStringList_Append(&config.warnoptions, L"ignore");
  if (!py.PyStatus_Exception(status))
    status = py.PyConfig_SetBytesString(&config, &config.program_name, at->interpreter);
  if (!py.PyStatus_Exception(status))
    status = py.PyConfig_SetBytesString(&config, &config.executable, at->interpreter);
  if (!py.PyStatus_Exception(status)) status = py.Py_InitializeFromConfig(&config);
  py.PyConfig_Clear(&config);
  return py.PyStatus_Exception(status) ? fail_with_status(status, at) : 0;
}

static int fail_with_exception(const places *at) {
  PyObject *kind = 0, *value = 0, *traceback = 0, *text;
  const char *words = 0;
  py.PyErr_Fetch(&kind, &value, &traceback);
  py.PyErr_NormalizeException(&kind, &value, &traceback);
  text = value ? py.PyObject_Str(value) : 0;
  if (text) words = py.PyUnicode_AsUTF8(text);
  aclnn_fail(-1, "the package aclnn in %s cannot be imported: %s", at->root,
             words ? words : "unknown error");
  py.Py_DecRef(text);
  py.Py_DecRef(kind);
  py.Py_DecRef(value);
  py.Py_DecRef(traceback);
  py.PyErr_Clear();
  return -1;
}

/* The package's folder first in a started interpreter, last in one of the program's own. */
static void extend_path(const places *at, int started) {
  PyObject *paths = py.PySys_GetObject("path");
  PyObject *root = paths ? py.PyUnicode_DecodeFSDefault(at->root) : 0;
  if (!root) {
    py.PyErr_Clear();
    return;
  }
  if (started)
    py.PyList_Insert(paths, 0, root);
  else
    py.PyList_Append(paths, root);
  py.Py_DecRef(root);
}

static int import_table(const places *at, int started, const aclnn_call_table **table) {
  PyObject *module = started ? 0 : py.PyImport_ImportModule(MODULE);
  if (!module) {
    py.PyErr_Clear();
    extend_path(at, started);
    module = py.PyImport_ImportModule(MODULE);
  }
  if (!module) return fail_with_exception(at);
  py.Py_DecRef(module);
  *table = py.PyCapsule_Import(MODULE ".table", 0);
  if (!*table) return fail_with_exception(at);
  if ((*table)->version != ACLNN_CALL_TABLE_VERSION)
    return aclnn_fail(-1, "the package aclnn that Python imports is of another version than the library in %s",
                      at->root);
  return 0;
}

/* Looks for Python in the process, also where it was loaded for one library alone. */
static int is_loaded(void) {
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized")) return 1;
  return dlopen(LIBPYTHON, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != 0;
}

static int load(places *at) {
  int found = find_interpreter(at);
  if (found && dlopen(at->library, RTLD_NOW | RTLD_GLOBAL)) return 0;
  if (!found && !getenv("ACLNN_PYTHON") && dlopen(LIBPYTHON, RTLD_NOW | RTLD_GLOBAL)) return 0;
  return aclnn_fail(-1, "there is no interpreter for the package in %s: it needs " LIBPYTHON
                    " of a Python with a shared library; looked for %s; ACLNN_PYTHON=/path/to/python "
                    "names another", at->root, at->sought[0] ? at->sought : LIBPYTHON);
}

int aclnn_start_interpreter(const aclnn_call_table **table) {
  static places at;
  PyGILState_STATE state = PyGILState_UNLOCKED;
  int started = 0, failed;
  if (!find_root(&at)) return aclnn_fail(-1, "the library does not lie in its package");
  if (!is_loaded() && load(&at)) return -1;
  if (look_up(RTLD_DEFAULT)) return -1;
  if (strncmp(py.Py_GetVersion(), PYTHON_VERSION ".", sizeof PYTHON_VERSION))
    return aclnn_fail(-1, "Python %.10s runs in this process, but the package in %s is for " PYTHON_VERSION,
                      py.Py_GetVersion(), at.root);
  if (!py.Py_IsInitialized()) {
    if (!at.interpreter[0]) find_interpreter(&at);
    if (initialize(&at)) return -1;
    started = 1;
  } else {
    state = py.PyGILState_Ensure();
  }
  failed = import_table(&at, started, table);
  if (started)
    py.PyEval_SaveThread();
  else
    py.PyGILState_Release(state);
  return failed;
}

/* --- Life ------------------------------------------------------------------------------------------ */

enum { NEW, RUNNING, FAILED, CLOSED, FORKED };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int life = NEW;
static const aclnn_call_table *kept; /* while the process is a forked child, or ends */
static char *failure;

static void close_calls(void) {
  __atomic_store_n(&aclnn_calls, 0, __ATOMIC_RELEASE);
  if (life == RUNNING) life = CLOSED;
}

static void at_exit(void) {
  if (life == RUNNING && kept->end) kept->end();
  close_calls();
}

static void in_child(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  mutex = fresh;
  if (life != RUNNING) return;
  life = FORKED;
  __atomic_store_n(&aclnn_calls, 0, __ATOMIC_RELEASE);
}

static void forked_by_python(void) {
  if (life != FORKED) return;
  life = RUNNING;
  __atomic_store_n(&aclnn_calls, kept, __ATOMIC_RELEASE);
}

static void take_failure(void) {
  const char *text = aclGetRecentErrMsg();
  life = FAILED;
  failure = strdup(text ? text : "the interpreter cannot be started");
}

static void start(void) {
  static aclnn_services services;
  const aclnn_call_table *table = 0;
  services.pairs = aclnn_pairs;
  services.n_pairs = aclnn_n_pairs;
  services.fail = aclnn_fail_with;
  services.forked_by_python = forked_by_python;
  services.close = close_calls;
  services.plan = aclnn_plan;
  services.run = aclnn_run;
  if (aclnn_start_interpreter(&table) || table->start(&services)) {
    take_failure();
    return;
  }
  pthread_atfork(0, 0, in_child);
  atexit(at_exit);
  kept = table;
  __atomic_store_n(&aclnn_calls, table, __ATOMIC_RELEASE);
  __atomic_store_n(&life, RUNNING, __ATOMIC_RELEASE);
}

/* Whoever starts needs the interpreter's lock, which a thread that waits for the start may have. */
static void start_once(void) {
  int (*is_initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  PyThreadState *saved = 0;
  if (is_initialized && is_initialized() && !look_up(RTLD_DEFAULT) && py.PyGILState_Check())
    saved = py.PyEval_SaveThread();
  pthread_mutex_lock(&mutex);
  if (life == NEW) start();
  pthread_mutex_unlock(&mutex);
  aclnn_hand_message_over();
  if (saved) py.PyEval_RestoreThread(saved);
}

/* Python's modules are imported by calls of calls. */
enum { STACK_OF_START = 160 << 10 };

const aclnn_call_table *aclnn_start(void) {
  if (__atomic_load_n(&life, __ATOMIC_ACQUIRE) == NEW && stack_left() < STACK_OF_START) {
    aclnn_fail_with(0, "the thread has less than 160 KiB left of its stack, which the start of the runtime needs: "
                    "call aclInit on another thread first");
    return 0;
  }
  if (__atomic_load_n(&life, __ATOMIC_ACQUIRE) == NEW) start_once();
  const aclnn_call_table *table = __atomic_load_n(&aclnn_calls, __ATOMIC_ACQUIRE);
  if (table) return table;
  if (life == FAILED) aclnn_fail_with(0, failure ? failure : "");
  if (life == CLOSED) aclnn_fail(0, "the process ends: nothing can be run any more");
  if (life == FORKED)
    aclnn_fail(0, "this process was forked after the first call of the library, which then runs in the parent "
               "alone: fork before the first call, or start a new program");
  return 0;
}
