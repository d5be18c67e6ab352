#pragma once

#include <cstdint>

#include "tandem/core/export.h"

namespace tandem {

class GradientContext;   // tandem/runtime/gradient_context.h
class InferenceContext;  // tandem/graph/inference_context.h
class Node;              // tandem/graph/graph.h
class RewriteContext;    // tandem/graph/rewrite.h

using ShapeFn = void (*)(InferenceContext&);
using GradientFn = void (*)(GradientContext&);
/// Replaces a node by something cheaper; returns false if there is nothing to do.
using RewriteFn = bool (*)(RewriteContext&);

/// Floating-point operations of one execution, from the node's attributes and shapes; negative if
/// these are not known.
using FlopsFn = double (*)(const Node&);

/// The gradient of ops through which none flows (comparisons, shapes): inputs count as unconnected.
TANDEM_EXPORT void not_differentiable(GradientContext&);

/// What executor, placer and partitioner treat specially.
enum class NodeKind : std::uint8_t {
  kPlain,
  kConst,
  kArg,
  kRetval,
  kVariable,
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCond,
  kSend,          ///< to another part of the step, by its rendezvous
  kRecv,          ///< from another part of the step
  kCopyToHost,    ///< within one graph, from a device's memory to the host's
  kCopyToDevice,  ///< within one graph, to a device's memory
  kCall,
  kIf,
  kWhile,
};

/// Calls functions of the graph; its arguments go to their nodes as they are.
constexpr bool calls_functions(NodeKind kind) {
  return kind == NodeKind::kCall || kind == NodeKind::kIf || kind == NodeKind::kWhile;
}

/// Exchanges a value with another part of the step. Such nodes run also when their inputs are dead,
/// since the other part waits for the value, dead or not.
constexpr bool is_transfer(NodeKind kind) {
  return kind == NodeKind::kSend || kind == NodeKind::kRecv;
}

/// How an integer output that serves as a shape follows from the inputs, for shape inference
/// through shapes as values.
enum class ShapeValue : std::uint8_t {
  kNone,
  kShapeOfInput,  ///< output i holds the shape of input i (Shape, ShapeN)
  kPackOfInputs,  ///< the inputs are the elements (Pack along axis 0)
  kSliceOfShape,  ///< of the vector in input 0: what begin, end and strides (inputs 1 to 3) and
                  ///< StridedSlice's masks take; of an op of two inputs, the element at input 1
  kSameAsInput,   ///< holds what input 0 holds (Identity, Cast between index types)
};

/// How an op joins elements: along the axes that input 1 names, but for kSumOfChannels.
enum class ReductionKind : std::uint8_t {
  kNothing,
  kSum,
  kMean,
  kSumOfChannels,  ///< a sum along all axes but the channels' (BiasAddGrad)
};

/// Whether each element of the output is the exact or correctly rounded result of the inputs'
/// elements at its place, whatever else is computed with it, and never an error.
enum class Exactness : std::uint8_t {
  kNone,
  kFloating,  ///< for floating dtypes (division)
  kAlways,
};

/// What an op gives its value to, of what its input 0 names, without reading it.
enum class Initializes : std::uint8_t { kNothing, kVariable, kTable };

/// What passes want to know of an op. Masks have bit i set for input or output i.
struct OpTraits {
  NodeKind kind = NodeKind::kPlain;
  /// Reads or changes state: never folded, merged or dropped; kept in program order.
  bool stateful = false;
  /// Stateful, but only reads: may run beside other readers, or not at all if unused.
  bool reads_only = false;
  /// Needs a NodeState that lives from one execution to the next.
  bool keeps_state = false;
  /// In loops and conditionals it runs also where its inputs are dead.
  bool runs_when_dead = false;
  /// Stands for a value that each run of the graph feeds; one with an input has that as default.
  bool placeholder = false;
  /// Output element i depends on the inputs' elements i alone (after broadcasting).
  bool elementwise = false;
  Exactness exact = Exactness::kNone;
  /// Inputs 0 and 1 may change places.
  bool commutative = false;
  /// Inputs whose memory output 0 may take over.
  std::uint32_t may_reuse = 0;
  /// Inputs whose memory the output of the same number shares as it is (Reshape, IdentityN).
  std::uint32_t shares_memory = 0;
  /// Inputs whose memory may live on in state or results (AssignVariableOp's value).
  std::uint32_t retains_inputs = 0;
  /// Outputs in memory of their own (a variable's value): none is planned for them.
  std::uint32_t owns_output_memory = 0;
  /// Inputs that kernels read on the host (shapes, axes).
  std::uint32_t host_inputs = 0;
  std::uint32_t host_outputs = 0;
  /// Keeps its state in host objects (queues, tables): runs on CPUs alone, as all ops do that take
  /// or give strings.
  bool cpu_only = false;
  ShapeValue value = ShapeValue::kNone;
  ReductionKind joins = ReductionKind::kNothing;
  Initializes initializes = Initializes::kNothing;
};

/// An op as it is written down, once, in its family's source file.
///
/// Grammar of the texts (names are TensorFlow's):
/// - inputs and outputs: `x: T, y: T`, `shape: int32`, `values: N * T`, `args: Tin` (of a list of
///   types), `ref: Ref(T)`
/// - attrs, separated by `;`: `T: {float, half}`, `T: numbers`, `N: int >= 1`, `axis: int = -1`,
///   `adj_x: bool = false`, `padding: {'SAME', 'VALID'}`, `strides: list(int)`,
///   `dtype: type = float`, `f: func`, `value: tensor`
/// - named sets of types: floats, complexes, reals, numbers, integers, signed, unsigned, index,
/// pod,
///   all
struct OpDecl {
  const char* name;
  const char* inputs = "";
  const char* outputs = "";
  const char* attrs = "";
  ShapeFn shape = nullptr;        ///< null: output shapes are unknown
  GradientFn gradient = nullptr;  ///< null: asking for the gradient is an error
  OpTraits traits = {};
  RewriteFn rewrite = nullptr;  ///< the same value by fewer or cheaper ops
  RewriteFn fuse = nullptr;     ///< one op for this node and what it reads: the same value but for
                                ///< rounding; asked for after all other rewrites
  FlopsFn flops = nullptr;      ///< null: one for each element of the largest input or output
  const char* doc = "";         ///< one sentence, and what a user must know of shapes and errors
};

/// Registers a declaration for every Runtime made afterwards (and, on first use of the name, for
/// running ones). Define one at namespace scope per op; it must live as long as the program or the
/// library that defines it.
class TANDEM_EXPORT OpRegistration {
 public:
  explicit OpRegistration(const OpDecl& decl);
  const OpDecl& decl() const { return decl_; }
  /// Position in the order of registration; unique in the process.
  std::uint32_t id() const { return id_; }
  const OpRegistration* next() const { return next_; }
  /// The newest registration; follow `next` to the oldest.
  static const OpRegistration* newest();

 private:
  OpDecl decl_;
  std::uint32_t id_;
  const OpRegistration* next_;
};

}  // namespace tandem
