#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layer_impl.h"

/// Layers around other layers: see also wrappers.h.
namespace tandem::keras {

/// A layer around another one, whose weights are its own. Derive from it to write one.
class TANDEM_EXPORT WrapperImpl : public LayerImpl {
 public:
  WrapperImpl(std::string class_name, Layer layer, LayerSettings settings = {});
  void build_many(const std::vector<PartialShape>& inputs) override;
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;

 protected:
  const Layer& layer() const { return layer_; }

 private:
  Layer layer_;
};
using Wrapper = WrapperImpl;

struct SpectralNormalizationOptions {
  std::int64_t power_iterations = 1;
  String name = {};
};
/// While training divides the kernel (or table) of a layer by its largest singular value, which
/// power iterations approximate (Miyato et al. 2018).
class TANDEM_EXPORT SpectralNormalization : public Layer {
 public:
  explicit SpectralNormalization(const Layer& layer,
                                 const SpectralNormalizationOptions& options = {});
};

/// Layers one after the other as one layer, such as augmentations: like a Sequential without
/// training of its own.
class TANDEM_EXPORT Pipeline : public Layer {
 public:
  explicit Pipeline(const std::vector<Layer>& layers, const String& name = {});
};

}  // namespace tandem::keras
