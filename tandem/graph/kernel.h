#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/op_def.h"

namespace tandem {

/// The work of an op. A kernel that waits for anything must be of the asynchronous form.
using KernelFn = void (*)(KernelContext&);
/// Called exactly once, from any thread, with null or the failure.
using KernelDone = std::function<void(std::exception_ptr)>;
/// The context stays valid until `done` is called.
using AsyncKernelFn = void (*)(KernelContext&, KernelDone done);
/// Null if the kernel takes this concrete case, else the reason why not (a literal: nothing frees
/// it).
using KernelAccepts = const char* (*)(const KernelContext&);

struct TypeConstraint {
  const char* attr = nullptr;
  DTypeSet types;
};

/// The loops of an elementwise kernel over floats, by which it can be part of a fused op. `out` may
/// be one of the operands; with a_scalar or b_scalar, a[0] or b[0] serves for all elements.
struct ElementLoops {
  void (*unary)(const void* x, void* out, std::int64_t n, float parameter) = nullptr;
  void (*binary)(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar,
                 bool b_scalar, float parameter) = nullptr;
  bool copies = false;  ///< the result is input 0 as it is
  double cost = 1;      ///< ns an element, roughly
};

/// One candidate for an op on a kernel class. Of those whose types fit, the one with the highest
/// priority that accepts the concrete case runs; the plain reference has priority 0 and accepts
/// all.
struct KernelDecl {
  const char* op;
  const char* name = "reference";  ///< as `explain` shows it
  const char* kernel_class = "cpu";
  TypeConstraint types[3] = {};
  int priority = 0;
  KernelFn run = nullptr;
  AsyncKernelFn run_async = nullptr;
  KernelAccepts accepts = nullptr;
  /// For elementwise kernels of one or two inputs (or more, from the left) without a parameter.
  ElementLoops (*float_loops)() = nullptr;
};

/// Runs a kernel of the synchronous form and checks its outputs.
inline void run_kernel(const KernelDecl& kernel, KernelContext& context) {
  context.begin_outputs();
  kernel.run(context);
  context.check_outputs(kernel.name);
}

/// What `check_outputs` throws after a kernel of the asynchronous form, or null.
TANDEM_EXPORT std::exception_ptr output_failure(const KernelContext& context, const char* kernel);

/// Registers a kernel as OpRegistration does an op.
class TANDEM_EXPORT KernelRegistration {
 public:
  explicit KernelRegistration(const KernelDecl& decl);
  const KernelDecl& decl() const { return decl_; }
  const KernelRegistration* next() const { return next_; }
  static const KernelRegistration* newest();

 private:
  KernelDecl decl_;
  const KernelRegistration* next_;
};

/// The kernels that fit an (op, kernel class, types), fastest first. Immutable.
struct KernelList {
  std::vector<const KernelDecl*> candidates;
  /// The first that accepts; throws UnimplementedError naming each refusal.
  const KernelDecl& choose(const KernelContext& context) const {
    const KernelDecl* first = candidates.front();
    return first->accepts == nullptr ? *first : choose_slow(context);
  }

 private:
  TANDEM_EXPORT const KernelDecl& choose_slow(const KernelContext& context) const;
};

/// The kernels that a Runtime knows. Thread-safe; lists never move.
class TANDEM_EXPORT KernelRegistry {
 public:
  KernelRegistry();
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  /// `attrs` must be complete. Null if there is no kernel for these types.
  const KernelList* find(const OpDef& op, std::string_view kernel_class,
                         const AttrMap& attrs) const;
  /// Like find, but throws: UnimplementedError "no kernel", naming the types for which there are
  /// kernels.
  const KernelList& get(const OpDef& op, std::string_view kernel_class, const AttrMap& attrs) const;
  std::vector<const KernelDecl*> all(std::string_view op) const;

 private:
  struct State;
  void refresh() const;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
