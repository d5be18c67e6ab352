#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/runtime/tensor.h"

namespace reference {

/// td::image's function of this name, with tf.image's arguments. Throws std::runtime_error for a
/// name it does not know.
std::vector<tandem::Tensor> call_image_function(const std::string& name, const nlohmann::json& args,
                                                const std::vector<tandem::Tensor>& inputs);

}  // namespace reference
