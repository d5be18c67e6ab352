#include "tandem/keras/layers/adaptive_pooling.h"

#include <memory>
#include <numeric>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/spatial.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/ops/networks.h"
#include "tandem/ops/array_ops.h"

namespace tandem::keras {
namespace {

class AdaptivePoolingImpl final : public LayerImpl {
 public:
  AdaptivePoolingImpl(const char* class_name, std::vector<std::int64_t> sizes, bool largest,
                      const AdaptivePoolingOptions& o)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        sizes_(std::move(sizes)),
        largest_(largest),
        channels_first_(o.data_format == "channels_first") {
    if (!channels_first_ && o.data_format != "channels_last") {
      throw InvalidArgumentError(cat(class_name,
                                     ": data_format must be 'channels_last' or 'channels_first', "
                                     "got '",
                                     o.data_format, "'."));
    }
    for (const std::int64_t size : sizes_)
      internal::require_positive(class_name, "output_size", size);
    without_weights();
    require_rank(static_cast<int>(sizes_.size()) + 2);
  }
  Tensor call(const Tensor& given, bool) override {
    const int rank = given.rank();
    std::vector<std::int64_t> last(static_cast<std::size_t>(rank)), first(last);
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<std::size_t>(i);
      last[at] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
      first[at] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    }
    const Tensor x = channels_first_ ? transpose(given, last) : given;
    const Tensor y =
        largest_ ? ops::adaptive_max_pool(x, sizes_) : ops::adaptive_average_pool(x, sizes_);
    return channels_first_ ? transpose(y, first) : y;
  }

 private:
  std::vector<std::int64_t> sizes_;
  bool largest_;
  bool channels_first_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& output_size) {
  a("output_size", output_size);
  a("data_format", o.data_format);
};

template <class Size>
Layer pooling(const char* class_name, Size size, bool largest, const AdaptivePoolingOptions& o) {
  return Layer(internal::with_arguments(
      std::make_shared<AdaptivePoolingImpl>(class_name, internal::sizes_of(size), largest, o),
      kArguments, o, size));
}

}  // namespace

AdaptiveAveragePooling1D::AdaptiveAveragePooling1D(std::int64_t size,
                                                   const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveAveragePooling1D", size, false, o)) {}
AdaptiveAveragePooling2D::AdaptiveAveragePooling2D(Size2D size, const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveAveragePooling2D", size, false, o)) {}
AdaptiveAveragePooling3D::AdaptiveAveragePooling3D(Size3D size, const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveAveragePooling3D", size, false, o)) {}
AdaptiveMaxPooling1D::AdaptiveMaxPooling1D(std::int64_t size, const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveMaxPooling1D", size, true, o)) {}
AdaptiveMaxPooling2D::AdaptiveMaxPooling2D(Size2D size, const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveMaxPooling2D", size, true, o)) {}
AdaptiveMaxPooling3D::AdaptiveMaxPooling3D(Size3D size, const AdaptivePoolingOptions& o)
    : Layer(pooling("AdaptiveMaxPooling3D", size, true, o)) {}

namespace {

template <class Class, class Size>
bool add(const char* name) {
  return internal::register_layer_class<Class, AdaptivePoolingOptions, Size>(name, kArguments);
}

const bool kRegistered[] = {add<AdaptiveAveragePooling1D, std::int64_t>("AdaptiveAveragePooling1D"),
                            add<AdaptiveAveragePooling2D, Size2D>("AdaptiveAveragePooling2D"),
                            add<AdaptiveAveragePooling3D, Size3D>("AdaptiveAveragePooling3D"),
                            add<AdaptiveMaxPooling1D, std::int64_t>("AdaptiveMaxPooling1D"),
                            add<AdaptiveMaxPooling2D, Size2D>("AdaptiveMaxPooling2D"),
                            add<AdaptiveMaxPooling3D, Size3D>("AdaptiveMaxPooling3D")};

}  // namespace
}  // namespace tandem::keras
