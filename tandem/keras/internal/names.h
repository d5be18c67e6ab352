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

/// "There is no loss 'mze'. Did you mean 'mse'? Choose one of …", without an end.
std::string no_such(std::string_view kind, const std::string& name,
                    const std::vector<std::string>& names);

}  // namespace tandem::keras::internal
