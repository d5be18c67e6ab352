#include "tandem/kernels/cuda/linalg/product_epilogue.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

template <class In, class Added, class Out>
TANDEM_KERNEL epilogue_kernel(const In* product, Out* y, std::int64_t columns, std::int64_t n,
                              Epilogue epilogue) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const auto sum = static_cast<Sum<Added>>(load(product[i]));
    y[i] = store<Out>(epilogue.apply<Added>(sum, i / columns, i % columns));
  }
}

// Whether cuBLASLt can do what follows: in the result's type, and elements of the result's shape.
bool fits_cublaslt(const Epilogue& e, Type type) {
  const int is_float = type == Type::kFloat ? 1 : 0;
  return is_epilogue_of_cublaslt(e.activation) && (!e.bias || e.float_bias == is_float) &&
         (!e.addend || (e.addend_row != 0 && e.float_addend == is_float));
}

}  // namespace

void apply_epilogue(const void* product, Type product_type, void* y, Type type, Type added,
                    std::int64_t rows, std::int64_t columns, const Epilogue& epilogue) {
  const std::int64_t n = rows * columns;
  visit_floating(added, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) <= sizeof(float)) {
      const auto apply = [&](auto* from, auto* to) {
        using In = std::remove_cv_t<std::remove_pointer_t<decltype(from)>>;
        using Out = std::remove_pointer_t<decltype(to)>;
        TANDEM_LAUNCH((epilogue_kernel<In, T, Out>), shape_for(n), 0, from, to, columns, n,
                      epilogue);
      };
      if (product_type != Type::kFloat) {
        apply(static_cast<const T*>(product), static_cast<T*>(y));
      } else if (type == Type::kFloat) {
        apply(static_cast<const float*>(product), static_cast<float*>(y));
      } else {
        apply(static_cast<const float*>(product), static_cast<T*>(y));
      }
    }
  });
}

bool multiply_with_epilogue(const KernelCall& call, Product p, const Epilogue& epilogue) {
  if (fits_cublaslt(epilogue, p.result_type)) {
    Product whole = p;
    whole.bias = epilogue.bias;
    whole.addend = epilogue.addend;
    whole.activation = epilogue.activation;
    if (multiply_by_cublaslt(call, whole)) return true;
  }
  if (epilogue.empty()) return false;
  void* const y = p.y;
  const Type type = p.result_type;
  // In float, as sums are, and not where the addend still lies.
  if (type != Type::kFloat || epilogue.addend == y)
    p.y = call.scratch(static_cast<std::size_t>(p.rows * p.columns) * sizeof(float));
  p.result_type = Type::kFloat;
  if (!multiply_by_cublaslt(call, p)) return false;
  apply_epilogue(p.y, Type::kFloat, y, type, p.type, p.rows, p.columns, epilogue);
  return true;
}

}  // namespace tandem::cuda
