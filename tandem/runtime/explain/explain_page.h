#pragma once

namespace tandem {

/// The fixed parts of an explanation's page. It refers to nothing outside of itself.
struct ExplainPage {
  static const char* style();
  static const char* script();
};

}  // namespace tandem
