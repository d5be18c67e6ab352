#pragma once

/* The C interface by which a shared library adds a type of device to Tandem.
 *
 * A plugin needs this header alone: C99 or C++, nothing of Tandem's library to link with. It
 * exports one function, tandem_plugin_init, which fills in a table of functions.
 * docs/adding-a-device.md walks through a whole plugin.
 *
 * Rules that hold throughout
 * - Every struct begins with its size, as the side that filled it in knows it. Members are only
 * ever added at the end, and the minor version then grows; a reader takes members beyond `size` as
 *   absent. A change of anything else makes a new major version, and other majors are refused.
 * - No exception and no longjmp crosses a function of this interface.
 * - A function that can fail takes a TandemStatus, which the caller has set to "no error"; the
 * callee writes to it only when it fails, and its other results do not count then.
 * - Texts are UTF-8 and end in NUL. The receiver copies those that it keeps, but for those in
 *   the plugin's table and its kernels, which live as long as the process. Libraries are never
 *   unloaded.
 * - Every function may be called from any thread, by several at a time, unless it says otherwise.
 * - Handles are opaque; the side that made one knows what is behind it. */

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
extern "C" {
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define TANDEM_PLUGIN_VERSION_MAJOR 1
#define TANDEM_PLUGIN_VERSION_MINOR 10

/* Put before the definition of tandem_plugin_init. */
#if defined(__GNUC__)
#define TANDEM_EXPORT_PLUGIN __attribute__((visibility("default")))
#else
#define TANDEM_EXPORT_PLUGIN
#endif

/* ---- Errors ---- */

/* The numbers are those of TensorFlow and gRPC; the ones that devices need have names here. */
typedef enum TandemCode {
  TANDEM_OK = 0,
  TANDEM_UNKNOWN = 2,
  TANDEM_INVALID_ARGUMENT = 3,
  TANDEM_NOT_FOUND = 5,
  TANDEM_RESOURCE_EXHAUSTED = 8, /* no memory left; smaller requests may still be met */
  TANDEM_FAILED_PRECONDITION = 9,
  TANDEM_UNIMPLEMENTED = 12,
  TANDEM_INTERNAL = 13,
  TANDEM_UNAVAILABLE = 14 /* the device is lost: nothing will work on it any more */
} TandemCode;

typedef struct TandemStatus {
  size_t size;
  int32_t code; /* a TandemCode */
  char message[1012];
} TandemStatus;

/* ---- Devices ---- */

typedef struct TandemDevice TandemDevice; /* a logical device */
typedef struct TandemStream TandemStream;
typedef struct TandemEvent TandemEvent;
typedef struct TandemKernelContext TandemKernelContext;

/* What is known of a physical device. Zero where it is not known. Figures out of range are refused
 * when the plugin is loaded: rates and times are finite and not negative. */
typedef struct TandemDeviceProperties {
  size_t size;
  char description[256];   /* one line, such as the chip's name */
  uint64_t memory_bytes;   /* at most 2^47 */
  double flops;            /* float operations a second */
  double memory_bandwidth; /* bytes a second */
  double link_bandwidth;   /* to and from the host, bytes a second */
  double link_latency;     /* seconds a copy */
  double launch_overhead;  /* seconds between two pieces of work */
  int32_t compute_streams; /* of a logical device; 1 to 64 */
  int32_t emulated;        /* 1 if this is no hardware */
  char details[512];       /* lines "name=value" of what else people may want to know */
} TandemDeviceProperties;

/* How a logical device is opened. Several may be cut from one physical device; Tandem itself holds
 * them to their limits, and cuts the memory that it takes into blocks. */
typedef struct TandemDeviceOptions {
  size_t size;
  int32_t physical;      /* index, from 0 */
  const char* name;      /* "/job:localhost/replica:0/task:0/device:TOY:0" */
  uint64_t memory_limit; /* for information; 0: all there is */
} TandemDeviceOptions;

/* What an open device is like. */
typedef struct TandemDeviceTraits {
  size_t size;
  /* From an address as allocate() gives it to the one that the device's kernels use. With the
   * kernel class "cpu" the host's kernels run on the device's streams: they follow address +
   * offset. */
  ptrdiff_t kernel_offset;
} TandemDeviceTraits;

/* ---- Streams ---- */

typedef enum TandemStreamKind {
  TANDEM_STREAM_COMPUTE = 0,
  TANDEM_STREAM_COPY_IN = 1, /* from the host or another device */
  TANDEM_STREAM_COPY_OUT = 2 /* to the host */
} TandemStreamKind;

/* A piece of work. The callee copies the struct. Unless enqueueing fails:
 * 1. `run` is called on a thread of the stream once everything enqueued before is over; where it
 *    only launches work of the device, that work is part of the piece. It may block, and it never
 *    fails as far as the stream is concerned. It is left out if the device is lost by then.
 * 2. `done` is called exactly once when the piece is over, also when it was left out, with "no
 *    error" or TANDEM_UNAVAILABLE. It may enqueue, must not block, and may be the last to let go of
 *    buffers, but never destroys streams or devices.
 * No thread of the caller's may be needed for either to happen. */
typedef struct TandemWork {
  size_t size;
  void (*run)(void* arg);
  void (*done)(void* arg, const TandemStatus* status);
  void* arg;
  double flops; /* estimates, 0 where unknown */
  double bytes;
  int32_t on_host; /* 1: takes no time of the device, but reads and writes host memory: runs only
                      when everything before it is over on the device, too */
  /* Since 1.4. Not 0 for a segment: several kernels that run as one piece. Segments of one number
   * tend to launch the same kernels each time, so that a device may keep them in a form that is
   * quick to launch again; it must not rely on it. */
  uint64_t segment;
} TandemWork;

typedef enum TandemCopyKind {
  TANDEM_COPY_TO_DEVICE = 0,
  TANDEM_COPY_TO_HOST = 1,
  TANDEM_COPY_BETWEEN_DEVICES = 2 /* or within one */
} TandemCopyKind;

/* A transfer in a stream's order; `done` as in TandemWork, or with why the transfer failed. Both
 * sides are valid until then. */
typedef struct TandemCopy {
  size_t size;
  int32_t kind; /* a TandemCopyKind */
  const void* from;
  void* to;
  TandemDevice* from_device; /* null for the host */
  TandemDevice* to_device;
  uint64_t bytes; /* may be 0 */
  void (*done)(void* arg, const TandemStatus* status);
  void* arg;
} TandemCopy;

/* Since 1.9. A kernel or a transfer as the hardware itself did it. */
typedef struct TandemTraceEvent {
  size_t size;
  const char* name; /* of the kernel, "copy to the device" and the like; valid during the call */
  uint32_t stream;  /* the hardware's own number: events of one follow each other */
  int64_t begin_ns; /* of the system's monotonic clock */
  int64_t end_ns;
  uint64_t bytes; /* moved by a transfer; 0 for kernels */
} TandemTraceEvent;

/* ---- Collectives, since 1.10 ---- */

typedef struct TandemCommunicator TandemCommunicator;

/* What the members of a communicator compute together. Every member has one input and one output,
 * but for a broadcast, whose root alone has an input. */
typedef enum TandemCollectiveKind {
  TANDEM_ALL_REDUCE = 0,    /* every output: the reduction of all inputs */
  TANDEM_ALL_GATHER = 1,    /* every output: the inputs one behind the other, by rank */
  TANDEM_BROADCAST = 2,     /* every output: the root's input */
  TANDEM_REDUCE_SCATTER = 3 /* output r: part r of the reduction of all inputs */
} TandemCollectiveKind;

typedef enum TandemReduction {
  TANDEM_REDUCE_SUM = 0,
  TANDEM_REDUCE_PRODUCT = 1,
  TANDEM_REDUCE_MAX = 2,
  TANDEM_REDUCE_MIN = 3,
  TANDEM_REDUCE_MEAN = 4
} TandemReduction;

/* A member's part, by rank. Addresses are those that the device's kernels use; input and output
 * do not overlap, and are valid until `done`, which is that of TandemWork: called exactly once when
 * the member's part is over. */
typedef struct TandemCollectiveMember {
  size_t size;
  const void* input; /* null where there is none */
  void* output;
  void (*done)(void* arg, const TandemStatus* status);
  void* arg;
} TandemCollectiveMember;

typedef struct TandemCollective {
  size_t size;
  int32_t kind;      /* a TandemCollectiveKind */
  int32_t reduction; /* a TandemReduction; of reductions alone */
  int32_t dtype;     /* TensorFlow's number */
  int32_t root;      /* rank; of broadcasts alone */
  /* Elements of each input; of a reduce-scatter those of each output, of which an input has as many
   * as there are members. Not 0. */
  uint64_t count;
  const TandemCollectiveMember* const* members;
  size_t num_members; /* as many as the communicator has */
} TandemCollective;

/* ---- Kernels ----
 *
 * With a kernel class of its own a device runs the ops for which the plugin has kernels, and
 * Tandem does the rest: copies by TandemCopy, calls of functions, conditions and loops on the host,
 * constants copied once. Ops on int32 alone count and index: the host computes them in its
 * own memory, by its own kernels. All other ops without a kernel here, variables included, go to
 * the CPU under soft placement, and values are copied there and back; without it they are an error.
 * Strings and resources stay on the host.
 *
 * Numbers of dtypes, TensorFlow's: float 1, double 2, int32 3, uint8 4, int16 5, int8 6, string 7,
 * complex64 8, int64 9, bool 10, bfloat16 14, uint16 17, complex128 18, half 19, resource 20,
 * variant 21, uint32 22, uint64 23. */

/* Elements of an input or output: row-major, without gaps. `dtype` is TensorFlow's number. */
typedef struct TandemTensor {
  size_t size;
  int32_t dtype;
  int32_t rank;
  const int64_t* dims; /* valid until the kernel returns */
  void* data;          /* as the device's kernels see it; host memory where the op's declaration
                          says so (docs/placement.md), as for shapes and axes */
  uint64_t bytes;
  int32_t on_host; /* since 1.3: 1 if `data` is host memory */
} TandemTensor;

/* A kernel for an op on the plugin's kernel class (see TandemPluginApi). */
typedef struct TandemKernel {
  size_t size;
  const char* op;        /* "AddV2" */
  const char* name;      /* as people see it; null: "plugin" */
  const char* type_attr; /* the attribute that `types` restrict, such as "T"; null: any types */
  const int32_t* types;
  size_t num_types;
  int32_t priority; /* of several that fit the highest runs */
  /* Runs in place of TandemWork::run. What it writes to `status` is the op's failure. */
  void (*run)(TandemKernelContext* context, TandemStatus* status);
  /* Since 1.2: a second attribute that is restricted, such as "DstT" of Cast; null: none. */
  const char* second_type_attr;
  const int32_t* second_types;
  size_t num_second_types;
} TandemKernel;

/* Since 1.6. An elementwise op that the plugin's kernels for fused ops (_FusedElementwise,
 * _FusedSum, _FusedElementwiseSums in docs/ops.md) can do as part of a tree. */
typedef struct TandemFusibleOp {
  size_t size;
  const char* op;   /* "AddV2", as the fused op's attribute "ops" names it */
  int32_t any_size; /* 1: fusing pays for values of any size, since each launch costs time; 0: for
                       large ones */
} TandemFusibleOp;

/* Since 1.6. A tree that Tandem would have the plugin run as one op. Everything in it is valid
 * during the call. */
typedef struct TandemFusedTree {
  size_t size;
  const char* fused_op; /* "_FusedElementwise" */
  size_t num_ops;
  const char* const* ops; /* its attributes "ops" and "operands" */
  size_t num_operands;
  const int64_t* operands;
  size_t num_inputs;
  const int32_t* input_types;
  int32_t output_type;
} TandemFusedTree;

/* ---- What Tandem offers to the plugin ---- */

typedef struct TandemHostApi {
  size_t size;
  int32_t version_major;
  int32_t version_minor;
  const char* tandem_version; /* "0.1.0" */

  /* For kernels, valid until they return. */
  const char* (*kernel_op)(TandemKernelContext* context);
  const char* (*kernel_node)(TandemKernelContext* context);
  TandemDevice* (*kernel_device)(TandemKernelContext* context);
  int32_t (*kernel_num_inputs)(TandemKernelContext* context);
  int32_t (*kernel_num_outputs)(TandemKernelContext* context);
  void (*kernel_input)(TandemKernelContext* context, int32_t index, TandemTensor* tensor,
                       TandemStatus* status);
  /* Every output is allocated once. Its elements have no values yet; it may take over an input's
   * memory where the op's declaration allows that. */
  void (*kernel_allocate_output)(TandemKernelContext* context, int32_t index, int32_t rank,
                                 const int64_t* dims, TandemTensor* tensor, TandemStatus* status);
  /* Attributes by name, as given or by default. TANDEM_NOT_FOUND if there is none of that type. */
  void (*kernel_attr_int)(TandemKernelContext* context, const char* name, int64_t* value,
                          TandemStatus* status);
  void (*kernel_attr_float)(TandemKernelContext* context, const char* name, float* value,
                            TandemStatus* status);
  void (*kernel_attr_bool)(TandemKernelContext* context, const char* name, int32_t* value,
                           TandemStatus* status);
  void (*kernel_attr_string)(TandemKernelContext* context, const char* name, const char** value,
                             size_t* length, TandemStatus* status);
  void (*kernel_attr_type)(TandemKernelContext* context, const char* name, int32_t* value,
                           TandemStatus* status);
  /* Since 1.1. Lists, such as "strides"; the values stay until the kernel returns. */
  void (*kernel_attr_int_list)(TandemKernelContext* context, const char* name,
                               const int64_t** values, size_t* count, TandemStatus* status);
  void (*kernel_attr_float_list)(TandemKernelContext* context, const char* name,
                                 const float** values, size_t* count, TandemStatus* status);

  /* Since 1.3. The value of the variable that input `index` names, as a handle or a reference.
   * With `write` it is in memory that nothing else sees: where something shares the value, `tensor`
   * is new memory, and the kernel first copies the elements of `shared` there, in its stream's
   * order; otherwise shared->data is null. FAILED_PRECONDITION while the variable has no value. */
  void (*kernel_variable)(TandemKernelContext* context, int32_t index, int32_t write,
                          TandemTensor* tensor, TandemTensor* shared, TandemStatus* status);
  /* Output `output` is input `input` as it is: the same memory, or the reference that it is. */
  void (*kernel_forward)(TandemKernelContext* context, int32_t input, int32_t output,
                         TandemStatus* status);
  /* For ops that keep a random state, such as RandomUniform: where in its stream of Philox 4x32-10
   * this execution begins. The node's state moves on by so many blocks. */
  void (*kernel_random)(TandemKernelContext* context, uint64_t blocks, uint32_t counter[4],
                        uint32_t key[2], TandemStatus* status);
  /* 1 if results must have the same bits in every run (op determinism). */
  int32_t (*kernel_deterministic)(TandemKernelContext* context);
  /* The text at `index` of a list of strings, and how many there are; an index beyond them gives
   * the number alone. */
  void (*kernel_attr_string_list)(TandemKernelContext* context, const char* name, size_t index,
                                  const char** value, size_t* length, size_t* count,
                                  TandemStatus* status);
  /* Since 1.5. Device memory for what the kernel launches, of its device's own and within its
   * limit. When the kernel has returned it goes back in the stream's order. */
  void* (*kernel_allocate_temporary)(TandemKernelContext* context, uint64_t bytes,
                                     TandemStatus* status);
  /* 1 if products of floats may be computed in TensorFloat-32. */
  int32_t (*kernel_tensor_float_32)(TandemKernelContext* context);

  /* Since 1.8. Tandem releases memory of this device's hardware that it keeps for later, as far
   * as that lies in reserved ranges, and returns how many bytes: for plugins whose hardware has no
   * memory left for something else. Not within other functions of the plugin's memory. */
  uint64_t (*release_memory)(TandemDevice* device);
} TandemHostApi;

/* ---- What the plugin offers to Tandem ---- */

/* Tandem has set `size` to what it knows and the rest to zero; the plugin fills in the rest, and
 * sets `size` to what it knows itself. Members marked "optional" may stay null. */
typedef struct TandemPluginApi {
  size_t size;
  int32_t version_major; /* TANDEM_PLUGIN_VERSION_MAJOR as the plugin was compiled */
  int32_t version_minor;
  const char* name;         /* of the plugin, one word */
  const char* device_type;  /* upper case, "TOY"; not "CPU" */
  const char* kernel_class; /* "cpu": the host's kernels serve; else a word of the plugin's own */
  const TandemKernel* const* kernels; /* optional; not with the kernel class "cpu" */
  size_t num_kernels;

  /* Physical devices, numbered from 0; at most 4096. The number stays the same. */
  int32_t (*device_count)(void);
  void (*device_properties)(int32_t physical, TandemDeviceProperties* properties,
                            TandemStatus* status);

  TandemDevice* (*device_open)(const TandemDeviceOptions* options, TandemDeviceTraits* traits,
                               TandemStatus* status);
  /* Its streams are destroyed and its memory is freed before. Not called from callbacks. */
  void (*device_close)(TandemDevice* device);
  /* optional: TANDEM_UNAVAILABLE with the reason once the device is lost. */
  void (*device_lost)(TandemDevice* device, TandemStatus* status);
  /* optional: loses the physical device behind this one, for tests. */
  void (*device_lose)(TandemDevice* device);
  /* optional: 1 if TANDEM_COPY_BETWEEN_DEVICES works from one to the other; null: it always does.
   */
  int32_t (*device_can_copy)(TandemDevice* from, TandemDevice* to);

  /* Device memory, aligned to 256 bytes: Tandem asks seldom, for much at a time. The address must
   * differ from every other in use in the process, so that it identifies its device; nothing
   * follows it but kernels, by kernel_offset. Memory may be freed from callbacks. */
  void* (*memory_allocate)(TandemDevice* device, uint64_t bytes, TandemStatus* status);
  void (*memory_free)(TandemDevice* device, void* address, uint64_t bytes);
  /* optional: host memory that copies are fastest with, aligned to 64 bytes. */
  void* (*staging_allocate)(TandemDevice* device, uint64_t bytes, TandemStatus* status);
  void (*staging_free)(TandemDevice* device, void* address, uint64_t bytes);

  TandemStream* (*stream_create)(TandemDevice* device, int32_t kind, int32_t index,
                                 TandemStatus* status);
  /* Returns when everything enqueued is over. Not called from callbacks. */
  void (*stream_destroy)(TandemStream* stream);
  /* TANDEM_UNAVAILABLE if the device is lost already; nothing is called then. */
  void (*stream_enqueue)(TandemStream* stream, const TandemWork* work, TandemStatus* status);
  void (*stream_copy)(TandemStream* stream, const TandemCopy* copy, TandemStatus* status);
  /* Later work begins after the event, of this plugin's but perhaps of another device; the caller
   * goes on at once, and may destroy the event. An event of a lost device counts as over. */
  void (*stream_wait)(TandemStream* stream, TandemEvent* event, TandemStatus* status);

  /* An event that is over when everything enqueued so far is over and every `done` of it has been
   * called, also if the device is lost by then. Outlives its stream. */
  TandemEvent* (*event_record)(TandemStream* stream, TandemStatus* status);
  int32_t (*event_done)(TandemEvent* event);
  void (*event_wait)(TandemEvent* event);
  void (*event_destroy)(TandemEvent* event);

  /* optional, since 1.4: segments. Without both Tandem enqueues every kernel by itself. They are
   * called within TandemWork::run, on its thread.
   * The copy between host and device becomes part of the piece, in the order of its kernels. `done`
   * of the copy is null; both sides are valid until the piece is over. */
  void (*stream_add_copy)(TandemStream* stream, const TandemCopy* copy, TandemStatus* status);
  /* Returns when what the piece has launched so far is over on the device: memory is short. */
  void (*stream_settle)(TandemStream* stream, TandemStatus* status);

  /* optional, since 1.5. Lines for people on the libraries that kernels use: which they are, and
   * what is done without those that are missing. Valid as long as the process. */
  const char* (*libraries)(void);
  /* optional, since 1.5, all five or none: ranges of addresses that memory is put into as it is
   * needed, so that memory that grows stays in one piece, and what is not needed goes back. Without
   * them memory comes by memory_allocate alone. Sizes and addresses within a range are multiples of
   * the granularity; 0: this device has none. */
  uint64_t (*memory_granularity)(TandemDevice* device);
  void* (*memory_reserve)(TandemDevice* device, uint64_t bytes, TandemStatus* status);
  void (*memory_unreserve)(TandemDevice* device, void* address, uint64_t bytes);
  /* Memory for a part of a range. RESOURCE_EXHAUSTED if the hardware has no more. */
  void (*memory_commit)(TandemDevice* device, void* address, uint64_t bytes, TandemStatus* status);
  /* A part that was committed by one call goes back. */
  void (*memory_decommit)(TandemDevice* device, void* address, uint64_t bytes);

  /* optional, since 1.6. Which elementwise ops the plugin's kernels for fused ops can do. Without
   * it Tandem takes them to do all that the CPU's do. Without such kernels nothing is fused. */
  const TandemFusibleOp* const* fusible_ops;
  size_t num_fusible_ops;
  /* optional, since 1.6. Asked for each tree of such ops. A status that says why not has Tandem try
   * smaller ones, down to no fusing; `td explain` shows the text. */
  void (*check_fused_tree)(const TandemFusedTree* tree, TandemStatus* status);

  /* optional, since 1.7, for devices with staging memory and a kernel_offset of 0: their kernels
   * can read staging memory at the host's address. As many bytes as they read there in the time
   * that a copy takes to begin: Tandem has them read smaller inputs there, instead of copying
   * them. 0: they cannot. */
  uint64_t (*host_read_limit)(TandemDevice* device);

  /* optional, since 1.9, both or neither: what the hardware did when, for profiles. From
   * trace_begin on the plugin keeps events of the physical device; trace_end reports those that are
   * over, and keeps none any more. Where several logical devices share the hardware, the first
   * trace_end of one of them reports all. */
  void (*trace_begin)(TandemDevice* device, TandemStatus* status);
  void (*trace_end)(TandemDevice* device, void (*report)(void* arg, const TandemTraceEvent* event),
                    void* arg);

  /* optional, since 1.10, all four or none: collectives between devices. Without them, and where
   * they refuse, values meet in host memory.
   * 1 if there is such work for that dtype. */
  int32_t (*collective_supported)(int32_t kind, int32_t reduction, int32_t dtype);
  /* For these compute streams, each of another logical device; the ranks are their places in the
   * list. UNIMPLEMENTED if these devices cannot work together, such as two that are cut from the
   * same hardware; UNAVAILABLE if one of them is lost. Tandem keeps a communicator for further work
   * of the same devices. May block. */
  TandemCommunicator* (*communicator_create)(TandemStream* const* streams, size_t num_streams,
                                             TandemStatus* status);
  /* Nothing of it is on its way. Perhaps after its streams are destroyed; not from callbacks. */
  void (*communicator_destroy)(TandemCommunicator* communicator);
  /* Enqueues the work on the streams of all members, in their order of work, or on none: if it
   * fails no `done` is called. Two calls that have streams in common, from any threads, come in the
   * same order on all of these. Once it is enqueued no member's part may wait for ever: where one
   * of them cannot take part, because its device is lost say, the others' `done` reports a failure
   * too, naming what failed, and the communicator stays of use for the devices that work. */
  void (*communicator_enqueue)(TandemCommunicator* communicator, const TandemCollective* work,
                               TandemStatus* status);
} TandemPluginApi;

/* The plugin's one symbol. Called once in a process; `host` lives as long as that. */
TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                             TandemStatus* status);

#ifdef __cplusplus
} /* extern "C" */
#endif
