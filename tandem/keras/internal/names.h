#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::keras::internal {

/// "BatchNormalization" → "batch_normalization", "ReLU" → "re_lu", as Keras does it.
std::string snake_case(std::string_view class_name);

/// A name that no other object got since clear_session: "dense", "dense_1", …
std::string auto_name(std::string_view class_name);

/// "mean_squared_error, mse, …" for messages.
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

}  // namespace tandem::keras::internal
