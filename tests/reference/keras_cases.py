"""What make_keras_reference.py runs: tables of layers, losses, metrics, optimizers and models.

Inputs are written in the language of the case files; configurations are the constructors'
arguments in Keras.
"""

import keras

# --- Layers -----------------------------------------------------------------------------------

IMAGE = "float[2,5,6,3]"
SEQUENCE = "float[2,4,6]"
LONG = "float[2,7,3]"
VOLUME = "float[2,4,5,6,2]"
# Which steps of a SEQUENCE count, and of five values.
STEPS = "bool=[[true,true,false,false],[false,true,false,true]]"
OTHER_STEPS = "bool=[[false,true,true,false],[true,true,false,true]]"
NO_STEPS = "bool=[[false,false,false,false],[true,true,true,true]]"
VALUES = "bool=[[true,false,true,true,false],[true,true,false,false,false]]"
ACTIVATIONS = ["celu", "elu", "exponential", "gelu", "hard_shrink", "hard_sigmoid", "hard_silu",
               "hard_swish", "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax",
               "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax",
               "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus",
               "swish", "tanh", "tanh_shrink"]
# Class, constructor arguments, inputs by name, call arguments.
LAYERS = [
    ("Dense", {"units": 4}, {"inputs": "float[3,5]"}, {}),
    ("Dense", {"units": 4}, {"inputs": "float[1,1]"}, {}),
    ("Dense", {"units": 4, "use_bias": False}, {"inputs": "float[3,5]"}, {}),
    ("Dense", {"units": 4, "activation": "relu"}, {"inputs": "float[2,3,5]"}, {}),
    ("Dense", {"units": 4, "activation": "softmax"}, {"inputs": "float[3,5]"}, {}),
    ("Dense", {"units": 4, "kernel_regularizer": "l2", "bias_regularizer": "l1"},
     {"inputs": "float[3,5]"}, {}),
    ("Dense", {"units": 4, "activation": "tanh"}, {"inputs": "double[3,5]"}, {}),
    ("Conv2D", {"filters": 4, "kernel_size": 3}, {"inputs": IMAGE}, {}),
    ("Conv2D", {"filters": 4, "kernel_size": 3, "padding": "same", "activation": "relu"},
     {"inputs": IMAGE}, {}),
    ("Conv2D", {"filters": 2, "kernel_size": [2, 3], "strides": [2, 1], "use_bias": False},
     {"inputs": IMAGE}, {}),
    ("Conv2D", {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"},
     {"inputs": IMAGE}, {}),
    ("Conv2D", {"filters": 2, "kernel_size": 2, "dilation_rate": 2, "padding": "same"},
     {"inputs": IMAGE}, {}),
    ("Conv2D", {"filters": 6, "kernel_size": 3, "groups": 3, "padding": "same"},
     {"inputs": IMAGE}, {}),
    ("DepthwiseConv2D", {"kernel_size": 3}, {"inputs": IMAGE}, {}),
    ("DepthwiseConv2D", {"kernel_size": 3, "depth_multiplier": 2, "padding": "same",
                         "activation": "relu"}, {"inputs": IMAGE}, {}),
    ("DepthwiseConv2D", {"kernel_size": [2, 2], "strides": 2, "use_bias": False},
     {"inputs": IMAGE}, {}),
    ("MaxPooling2D", {}, {"inputs": IMAGE}, {}),
    ("MaxPooling2D", {"pool_size": [2, 3], "strides": 1, "padding": "same"}, {"inputs": IMAGE}, {}),
    ("MaxPooling2D", {"pool_size": 3, "strides": [1, 2]}, {"inputs": IMAGE}, {}),
    ("AveragePooling2D", {"pool_size": 2}, {"inputs": IMAGE}, {}),
    ("AveragePooling2D", {"pool_size": 3, "strides": 2, "padding": "same"}, {"inputs": IMAGE}, {}),
    ("GlobalAveragePooling2D", {}, {"inputs": IMAGE}, {}),
    ("GlobalAveragePooling2D", {"keepdims": True}, {"inputs": IMAGE}, {}),
    ("Flatten", {}, {"inputs": IMAGE}, {}),
    ("Flatten", {}, {"inputs": "float[3]"}, {}),
    ("Reshape", {"target_shape": [3, 2]}, {"inputs": "float[2,6]"}, {}),
    ("Reshape", {"target_shape": [-1, 2]}, {"inputs": "float[2,3,4]"}, {}),
    ("BatchNormalization", {}, {"inputs": IMAGE}, {"training": True}),
    ("BatchNormalization", {}, {"inputs": IMAGE}, {"training": False}),
    ("BatchNormalization", {"momentum": 0.9, "epsilon": 0.01}, {"inputs": "float[6,3]"},
     {"training": True}),
    ("BatchNormalization", {}, {"inputs": "float[6,3]"}, {"training": False}),
    ("BatchNormalization", {"center": False, "scale": False}, {"inputs": IMAGE},
     {"training": True}),
    ("BatchNormalization", {"axis": 1}, {"inputs": "float[3,4,2]"}, {"training": True}),
    ("LayerNormalization", {}, {"inputs": SEQUENCE}, {}),
    ("LayerNormalization", {"epsilon": 1e-6}, {"inputs": "float[3,5]"}, {}),
    ("LayerNormalization", {"axis": [1, 2]}, {"inputs": SEQUENCE}, {}),
    ("LayerNormalization", {"axis": 1}, {"inputs": SEQUENCE}, {}),
    ("LayerNormalization", {"center": False}, {"inputs": SEQUENCE}, {}),
    ("LayerNormalization", {"scale": False}, {"inputs": SEQUENCE}, {}),
    *(("Activation", {"activation": name}, {"inputs": "float[3,4]:normal(0,2)"}, {})
      for name in ACTIVATIONS),
    ("Activation", {"activation": "glu"}, {"inputs": "float[3,4]"}, {}),
    *(("Activation", {"activation": name},
       {"inputs": "float=[[0,0.5,-0.5,1,-1],[3,-3,6,-6,20],[-20,100,-100,2.5,-2.5]]"}, {})
      for name in ACTIVATIONS if name != "sparsemax"),
    ("Activation", {"activation": "softmax"}, {"inputs": "float[2,3,4]"}, {}),
    ("Embedding", {"input_dim": 7, "output_dim": 3}, {"inputs": "int32[2,4]:ints(0,7)"}, {}),
    ("Embedding", {"input_dim": 7, "output_dim": 3}, {"inputs": "int32=[[1,1,6],[0,1,6]]"}, {}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": SEQUENCE, "value": "float[2,5,6]"}, {}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": SEQUENCE, "value": "float[2,5,6]", "key": "float[2,5,4]"}, {}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, "value_dim": 2, "use_bias": False},
     {"query": SEQUENCE, "value": SEQUENCE}, {}),
    ("MultiHeadAttention", {"num_heads": 1, "key_dim": 3, "output_shape": 5},
     {"query": SEQUENCE, "value": SEQUENCE}, {}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": SEQUENCE, "value": SEQUENCE}, {"use_causal_mask": True}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": SEQUENCE, "value": "float[2,3,6]",
      "attention_mask": "bool=[[[true,true,false]],[[true,false,true]]]"}, {}),
    ("Conv1D", {"filters": 4, "kernel_size": 3}, {"inputs": LONG}, {}),
    ("Conv1D", {"filters": 4, "kernel_size": 3, "padding": "same", "strides": 2,
                "activation": "relu"}, {"inputs": LONG}, {}),
    ("Conv1D", {"filters": 4, "kernel_size": 3, "padding": "causal"}, {"inputs": LONG}, {}),
    ("Conv1D", {"filters": 2, "kernel_size": 2, "padding": "causal", "dilation_rate": 2,
                "use_bias": False}, {"inputs": LONG}, {}),
    ("Conv1D", {"filters": 6, "kernel_size": 2, "groups": 3}, {"inputs": LONG}, {}),
    ("Conv1D", {"filters": 2, "kernel_size": 3, "kernel_regularizer": "l2"},
     {"inputs": "float[1,3,1]"}, {}),
    ("DepthwiseConv1D", {"kernel_size": 3}, {"inputs": LONG}, {}),
    ("DepthwiseConv1D", {"kernel_size": 2, "depth_multiplier": 2, "strides": 2,
                         "padding": "same"}, {"inputs": LONG}, {}),
    ("DepthwiseConv1D", {"kernel_size": 2, "dilation_rate": 2}, {"inputs": LONG}, {}),
    ("SeparableConv1D", {"filters": 4, "kernel_size": 3}, {"inputs": LONG}, {}),
    ("SeparableConv1D", {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same",
                         "depth_multiplier": 2, "activation": "tanh"}, {"inputs": LONG}, {}),
    ("SeparableConv1D", {"filters": 2, "kernel_size": 2, "dilation_rate": 3, "use_bias": False},
     {"inputs": LONG}, {}),
    ("SeparableConv2D", {"filters": 4, "kernel_size": 3}, {"inputs": IMAGE}, {}),
    ("SeparableConv2D", {"filters": 4, "kernel_size": [2, 3], "strides": 2, "padding": "same",
                         "depth_multiplier": 2, "activation": "relu"}, {"inputs": IMAGE}, {}),
    ("SeparableConv2D", {"filters": 2, "kernel_size": 2, "dilation_rate": 2,
                         "pointwise_regularizer": "l1", "depthwise_regularizer": "l2"},
     {"inputs": IMAGE}, {}),
    ("Conv1DTranspose", {"filters": 4, "kernel_size": 3}, {"inputs": LONG}, {}),
    ("Conv1DTranspose", {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same",
                         "activation": "relu"}, {"inputs": LONG}, {}),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3, "use_bias": False},
     {"inputs": LONG}, {}),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": 1},
     {"inputs": LONG}, {}),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": 3}, {"inputs": IMAGE}, {}),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [2, 3], "strides": [2, 1],
                         "padding": "same"}, {"inputs": IMAGE}, {}),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3, "activation": "tanh"},
     {"inputs": IMAGE}, {}),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same",
                         "output_padding": [1, 0]}, {"inputs": IMAGE}, {}),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": 1},
     {"inputs": IMAGE}, {}),
    ("MaxPooling1D", {}, {"inputs": LONG}, {}),
    ("MaxPooling1D", {"pool_size": 3, "strides": 1, "padding": "same"}, {"inputs": LONG}, {}),
    ("MaxPooling1D", {"pool_size": 2, "data_format": "channels_first"}, {"inputs": LONG}, {}),
    ("AveragePooling1D", {"pool_size": 2}, {"inputs": LONG}, {}),
    ("AveragePooling1D", {"pool_size": 3, "strides": 2, "padding": "same"}, {"inputs": LONG}, {}),
    ("GlobalAveragePooling1D", {}, {"inputs": LONG}, {}),
    ("GlobalAveragePooling1D", {"data_format": "channels_first", "keepdims": True},
     {"inputs": LONG}, {}),
    ("GlobalMaxPooling1D", {}, {"inputs": LONG}, {}),
    ("GlobalMaxPooling2D", {"keepdims": True}, {"inputs": IMAGE}, {}),
    ("GlobalAveragePooling3D", {}, {"inputs": VOLUME}, {}),
    ("GlobalMaxPooling3D", {"data_format": "channels_first"}, {"inputs": VOLUME}, {}),
    ("UpSampling1D", {}, {"inputs": LONG}, {}),
    ("UpSampling1D", {"size": 3}, {"inputs": LONG}, {}),
    ("UpSampling2D", {}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"size": [3, 1]}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"size": [2, 3], "data_format": "channels_first"}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"interpolation": "bilinear"}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"size": [3, 2], "interpolation": "bilinear",
                      "data_format": "channels_first"}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"interpolation": "bicubic"}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"interpolation": "lanczos3"}, {"inputs": IMAGE}, {}),
    ("UpSampling2D", {"size": [1, 2], "interpolation": "lanczos5"}, {"inputs": IMAGE}, {}),
    ("UpSampling3D", {}, {"inputs": VOLUME}, {}),
    ("UpSampling3D", {"size": [1, 2, 3], "data_format": "channels_first"}, {"inputs": VOLUME}, {}),
    ("ZeroPadding1D", {}, {"inputs": LONG}, {}),
    ("ZeroPadding1D", {"padding": [2, 0]}, {"inputs": LONG}, {}),
    ("ZeroPadding2D", {}, {"inputs": IMAGE}, {}),
    ("ZeroPadding2D", {"padding": [1, 2]}, {"inputs": IMAGE}, {}),
    ("ZeroPadding2D", {"padding": [[1, 0], [2, 3]], "data_format": "channels_first"},
     {"inputs": IMAGE}, {}),
    ("ZeroPadding3D", {}, {"inputs": VOLUME}, {}),
    ("ZeroPadding3D", {"padding": [[1, 0], [0, 0], [2, 1]]}, {"inputs": VOLUME}, {}),
    ("Cropping1D", {}, {"inputs": LONG}, {}),
    ("Cropping1D", {"cropping": [2, 0]}, {"inputs": LONG}, {}),
    ("Cropping2D", {}, {"inputs": IMAGE}, {}),
    ("Cropping2D", {"cropping": [[1, 0], [2, 3]]}, {"inputs": IMAGE}, {}),
    ("Cropping2D", {"cropping": 1, "data_format": "channels_first"},
     {"inputs": "float[2,3,5,6]"}, {}),
    ("Cropping3D", {}, {"inputs": VOLUME}, {}),
    ("Cropping3D", {"cropping": [1, 0, 2]}, {"inputs": VOLUME}, {}),
    ("Conv3D", {"filters": 3, "kernel_size": 2}, {"inputs": VOLUME}, {}),
    ("Conv3D", {"filters": 2, "kernel_size": [2, 3, 1], "strides": 2, "padding": "same",
                "activation": "relu", "use_bias": False}, {"inputs": VOLUME}, {}),
    ("Conv3DTranspose", {"filters": 3, "kernel_size": 2}, {"inputs": VOLUME}, {}),
    ("Conv3DTranspose", {"filters": 1, "kernel_size": 3, "strides": 2, "padding": "same"},
     {"inputs": "float[1,2,3,2,2]"}, {}),
    ("MaxPooling3D", {}, {"inputs": VOLUME}, {}),
    ("MaxPooling3D", {"pool_size": [1, 2, 3], "strides": 1, "padding": "same"},
     {"inputs": VOLUME}, {}),
    ("AveragePooling3D", {"pool_size": 2}, {"inputs": VOLUME}, {}),
    ("AveragePooling3D", {"pool_size": 3, "strides": 2, "padding": "same"},
     {"inputs": VOLUME}, {}),
    *((name, config, {"inputs": SEQUENCE}, {})
      for name in ["SimpleRNN", "LSTM", "GRU"]
      for config in [{"units": 3}, {"units": 3, "return_sequences": True},
                     {"units": 2, "use_bias": False, "go_backwards": True,
                      "return_sequences": True},
                     {"units": 2, "activation": "relu", "unroll": True,
                      "recurrent_regularizer": "l2"}]),
    ("LSTM", {"units": 1, "unit_forget_bias": False, "recurrent_activation": "hard_sigmoid"},
     {"inputs": "float[1,1,1]"}, {}),
    ("GRU", {"units": 3, "reset_after": False, "return_sequences": True}, {"inputs": SEQUENCE}, {}),
    ("GRU", {"units": 3, "reset_after": False, "use_bias": False}, {"inputs": SEQUENCE}, {}),
    *(("Bidirectional", {"layer": layer, **more}, {"inputs": SEQUENCE}, {})
      for layer, more in [
          ({"class": "LSTM", "config": {"units": 3}}, {}),
          ({"class": "LSTM", "config": {"units": 3, "return_sequences": True}}, {}),
          ({"class": "GRU", "config": {"units": 2, "return_sequences": True}},
           {"merge_mode": "sum"}),
          ({"class": "SimpleRNN", "config": {"units": 2}}, {"merge_mode": "mul"}),
          ({"class": "SimpleRNN", "config": {"units": 2, "return_sequences": True}},
           {"merge_mode": "ave"})]),
    ("TimeDistributed", {"layer": {"class": "Dense", "config": {"units": 2}}},
     {"inputs": SEQUENCE}, {}),
    ("TimeDistributed", {"layer": {"class": "Conv2D", "config": {"filters": 2, "kernel_size": 2}}},
     {"inputs": "float[2,3,4,3,2]"}, {}),
    *(("RNN", {"cell": {"class": cell, "config": {"units": 2}}, "return_sequences": True},
       {"inputs": SEQUENCE}, {}) for cell in ["SimpleRNNCell", "LSTMCell", "GRUCell"]),
    *((name, {"units": 3, **config}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}})
      for name in ["SimpleRNN", "LSTM", "GRU"]
      for config in [{}, {"return_sequences": True}, {"unroll": True},
                     {"go_backwards": True, "return_sequences": True},
                     {"zero_output_for_mask": True, "return_sequences": True},
                     {"unroll": True, "return_sequences": True, "go_backwards": True}]),
    ("LSTM", {"units": 2, "return_sequences": True, "unroll": True, "zero_output_for_mask": True},
     {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("LSTM", {"units": 2}, {"inputs": SEQUENCE}, {"masks": {"inputs": NO_STEPS}}),
    ("Bidirectional", {"layer": {"class": "LSTM", "config": {"units": 3}}},
     {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Bidirectional", {"layer": {"class": "GRU", "config": {"units": 2, "return_sequences": True}}},
     {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Bidirectional", {"layer": {"class": "LSTM", "config": {"units": 2}},
                       "backward_layer": {"class": "GRU", "config": {"units": 3,
                                                                     "go_backwards": True}}},
     {"inputs": SEQUENCE}, {}),
    ("TimeDistributed", {"layer": {"class": "Dense", "config": {"units": 2}}},
     {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("TimeDistributed", {"layer": {"class": "BatchNormalization", "config": {}}},
     {"inputs": SEQUENCE}, {"training": True}),
    ("TimeDistributed", {"layer": {"class": "BatchNormalization", "config": {}}},
     {"inputs": SEQUENCE}, {"training": False}),
    ("TimeDistributed", {"layer": {"class": "LSTM", "config": {"units": 2}}},
     {"inputs": "float[2,2,4,3]"}, {}),
    ("RNN", {"cell": {"class": "StackedRNNCells", "config": {"cells": [
        {"class": "LSTMCell", "config": {"units": 2}},
        {"class": "GRUCell", "config": {"units": 3}}]}}, "return_sequences": True},
     {"inputs": SEQUENCE}, {}),
    ("RNN", {"cell": {"class": "StackedRNNCells", "config": {"cells": [
        {"class": "SimpleRNNCell", "config": {"units": 3}},
        {"class": "LSTMCell", "config": {"units": 2}}]}}},
     {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    *(("ConvLSTM1D", {"filters": 2, "kernel_size": 3, **more}, {"inputs": "float[2,3,6,2]"}, {})
      for more in [{}, {"padding": "same", "return_sequences": True},
                   {"strides": 2, "use_bias": False, "go_backwards": True},
                   {"dilation_rate": 2, "unit_forget_bias": False, "activation": "relu"}]),
    *(("ConvLSTM2D", {"filters": 2, "kernel_size": 2, **more}, {"inputs": "float[2,3,4,5,2]"}, {})
      for more in [{}, {"padding": "same", "return_sequences": True, "kernel_size": [3, 2]},
                   {"strides": [1, 2], "recurrent_activation": "hard_sigmoid"}]),
    ("ConvLSTM3D", {"filters": 1, "kernel_size": 2, "padding": "same"},
     {"inputs": "float[1,2,3,3,2,2]"}, {}),
    ("ConvLSTM2D", {"filters": 2, "kernel_size": 2, "return_sequences": True},
     {"inputs": "float[2,3,4,5,2]"}, {"masks": {"inputs": "bool=[[true,false,true],"
                                                          "[false,true,true]]"}}),
    ("Masking", {}, {"inputs": "float=[[[1,2],[0,0],[0,3]],[[0,0],[4,5],[0,0]]]"}, {}),
    ("Masking", {"mask_value": -1.0}, {"inputs": "float=[[[1,2],[-1,-1],[-1,3]]]"}, {}),
    ("Embedding", {"input_dim": 7, "output_dim": 3, "mask_zero": True},
     {"inputs": "int32=[[1,0,6],[0,0,6]]"}, {}),
    ("GlobalAveragePooling1D", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("GlobalAveragePooling1D", {"keepdims": True}, {"inputs": SEQUENCE},
     {"masks": {"inputs": STEPS}}),
    ("GlobalAveragePooling1D", {"data_format": "channels_first"}, {"inputs": "float[2,6,4]"},
     {"masks": {"inputs": STEPS}}),
    ("GlobalMaxPooling1D", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("BatchNormalization", {}, {"inputs": SEQUENCE},
     {"training": True, "masks": {"inputs": STEPS}}),
    ("LayerNormalization", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Dense", {"units": 2}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Flatten", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Conv1D", {"filters": 2, "kernel_size": 2}, {"inputs": SEQUENCE},
     {"masks": {"inputs": STEPS}}),
    ("Activation", {"activation": "relu"}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Softmax", {}, {"inputs": "float[3,4]"}, {}),
    ("Softmax", {"axis": 1}, {"inputs": "float[2,3,4]"}, {}),
    ("Softmax", {"axis": [1, 2]}, {"inputs": "float[2,3,4]"}, {}),
    ("Softmax", {}, {"inputs": "float[2,4]"}, {"masks": {"inputs": STEPS}}),
    ("Softmax", {}, {"inputs": "float[2,4]"}, {"masks": {"inputs": NO_STEPS}}),
    ("ReLU", {}, {"inputs": "float[3,4]"}, {}),
    ("ReLU", {"max_value": 0.8, "negative_slope": 0.1, "threshold": 0.2},
     {"inputs": "float[3,4]"}, {}),
    ("LeakyReLU", {}, {"inputs": "float[3,4]"}, {}),
    ("LeakyReLU", {"negative_slope": 0.1}, {"inputs": "float[3,4]"}, {}),
    ("ELU", {"alpha": 0.5}, {"inputs": "float[3,4]"}, {}),
    ("PReLU", {}, {"inputs": "float[3,4]"}, {}),
    ("PReLU", {"shared_axes": [1, 2], "alpha_regularizer": "l2"}, {"inputs": IMAGE}, {}),
    ("PReLU", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("RepeatVector", {"n": 3}, {"inputs": "float[2,4]"}, {}),
    ("Identity", {}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    ("Permute", {"dims": [2, 1]}, {"inputs": SEQUENCE}, {}),
    ("Rescaling", {"scale": 0.5, "offset": 1.0}, {"inputs": "float[2,4]"}, {}),
    *((name, {"rate": 0.5}, {"inputs": inputs}, {"training": False})
      for name, inputs in [("Dropout", SEQUENCE), ("SpatialDropout1D", SEQUENCE),
                           ("SpatialDropout2D", IMAGE), ("SpatialDropout3D", VOLUME),
                           ("GaussianDropout", SEQUENCE), ("AlphaDropout", SEQUENCE)]),
    *((name, {"rate": 0.0}, {"inputs": inputs}, {"training": True, "masks": {"inputs": STEPS}})
      for name, inputs in [("Dropout", SEQUENCE), ("SpatialDropout1D", SEQUENCE),
                           ("GaussianDropout", SEQUENCE), ("AlphaDropout", SEQUENCE)]),
    ("GaussianNoise", {"stddev": 0.5}, {"inputs": SEQUENCE}, {"training": False}),
    ("ActivityRegularization", {"l1": 0.5, "l2": 0.25}, {"inputs": "float[2,4]"}, {}),
    ("GroupNormalization", {"groups": 3}, {"inputs": "float[2,4,6]"}, {}),
    ("GroupNormalization", {"groups": 2, "epsilon": 0.01}, {"inputs": "float[2,3,4,4]"}, {}),
    ("GroupNormalization", {"groups": -1, "center": False}, {"inputs": IMAGE}, {}),
    ("GroupNormalization", {"groups": 1, "scale": False}, {"inputs": "float[3,4]"}, {}),
    ("GroupNormalization", {"groups": 2, "axis": 1}, {"inputs": "float[2,4,3]"}, {}),
    ("RMSNormalization", {}, {"inputs": SEQUENCE}, {}),
    ("RMSNormalization", {"axis": [1, 2], "epsilon": 0.01}, {"inputs": SEQUENCE}, {}),
    ("UnitNormalization", {}, {"inputs": SEQUENCE}, {}),
    ("UnitNormalization", {"axis": [1, 2]}, {"inputs": SEQUENCE}, {"masks": {"inputs": STEPS}}),
    *((name, config, {"0": SEQUENCE, "1": "float[2,5,6]", **more}, call)
      for name, configs in [("Attention", [{}, {"use_scale": True}, {"score_mode": "concat"},
                                           {"score_mode": "concat", "use_scale": True}]),
                            ("AdditiveAttention", [{}, {"use_scale": False}])]
      for config in configs
      for more, call in [({}, {}), ({"2": "float[2,5,6]"}, {"use_causal_mask": True}),
                         ({}, {"masks": {"0": STEPS, "1": VALUES}})]),
    *(("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, **config},
       {"query": SEQUENCE, "value": "float[2,5,6]"}, call)
      for config in [{}, {"dropout": 0.5}]
      for call in [{"masks": {"query": STEPS}}, {"masks": {"value": VALUES}},
                   {"masks": {"query": STEPS, "value": VALUES}, "use_causal_mask": True},
                   {"masks": {"query": NO_STEPS}}]),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": SEQUENCE, "value": "float[2,5,6]", "key": "float[2,5,4]"},
     {"masks": {"key": VALUES}}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, "use_gate": True},
     {"query": SEQUENCE, "value": "float[2,5,6]"}, {}),
    ("MultiHeadAttention", {"num_heads": 1, "key_dim": 3, "sliding_window": 2},
     {"query": SEQUENCE, "value": "float[2,5,6]"}, {}),
    *((name, {}, {"0": SEQUENCE, "1": SEQUENCE, **more}, call)
      for name in ["Subtract", "Multiply", "Average", "Maximum", "Minimum"]
      for more, call in [({}, {}), ({}, {"masks": {"0": STEPS, "1": OTHER_STEPS}}),
                         ({}, {"masks": {"1": STEPS}})]),
    ("Add", {}, {"0": SEQUENCE, "1": SEQUENCE}, {"masks": {"0": STEPS, "1": OTHER_STEPS}}),
    ("Concatenate", {}, {"0": SEQUENCE, "1": SEQUENCE},
     {"masks": {"0": STEPS, "1": OTHER_STEPS}}),
    ("Concatenate", {"axis": 1}, {"0": SEQUENCE, "1": SEQUENCE}, {"masks": {"0": STEPS}}),
    *(("Dot", {"axes": axes, **more}, {"0": a, "1": b}, {})
      for axes, more, a, b in [
          (1, {}, "float[2,3]", "float[2,3]"), (-1, {"normalize": True}, "float[2,3]", "float[2,3]"),
          (2, {}, "float[2,3,4]", "float[2,5,4]"), ([2, 1], {}, "float[2,3,4]", "float[2,4,5]"),
          ([1, 1], {}, "float[2,3]", "float[2,3,4]"), ([1, 1], {}, "float[2,3,4]", "float[2,3]"),
          ([2, 1], {"normalize": True}, "float[2,3,4,2]", "float[2,4,5]")]),
    ("Add", {}, {"0": "float[2,3]", "1": "float[2,3]"}, {}),
    ("Add", {}, {"0": "float[2,3]", "1": "float[2,3]", "2": "float[2,1]"}, {}),
    ("Concatenate", {}, {"0": "float[2,3]", "1": "float[2,2]"}, {}),
    ("Concatenate", {"axis": 1}, {"0": "float[2,1,3]", "1": "float[2,4,3]"}, {}),
]

# --- Losses -----------------------------------------------------------------------------------

REGRESSION = ("float[4,3]", "float[4,3]")
POSITIVE = ("float[4,3]:positive", "float[4,3]:positive")
BINARY = ("float[4,3]:ints(0,2)", "float[4,3]:uniform(0.05,0.95)")
SIGNED = ("float=[[-1,1,-1],[1,1,-1]]", "float[2,3]")
CATEGORIES = ("float[4,5]:onehot", "float[4,5]:probabilities")
SPARSE = ("int32[4]:ints(0,5)", "float[4,5]:probabilities")
SPARSE_COLUMN = ("int32[4,1]:ints(0,5)", "float[4,5]:probabilities")
LOGITS = ("float[4,5]:onehot", "float[4,5]")
SPARSE_LOGITS = ("int32[4]:ints(0,5)", "float[4,5]")
BINARY_LOGITS = ("float[4,3]:ints(0,2)", "float[4,3]")
EDGES = ("float=[[0,1],[1,0],[1,1]]", "float=[[0,1],[0,1],[0.5,1]]")
LOSS_NAMES = {
    "mean_squared_error": REGRESSION, "mse": REGRESSION, "mean_absolute_error": REGRESSION,
    "mae": REGRESSION, "mean_absolute_percentage_error": REGRESSION, "mape": REGRESSION,
    "mean_squared_logarithmic_error": POSITIVE, "msle": POSITIVE, "huber": REGRESSION,
    "log_cosh": REGRESSION, "cosine_similarity": REGRESSION, "poisson": POSITIVE,
    "kl_divergence": CATEGORIES, "kld": CATEGORIES, "hinge": SIGNED, "squared_hinge": SIGNED,
    "categorical_hinge": CATEGORIES, "binary_crossentropy": BINARY, "bce": BINARY,
    "binary_focal_crossentropy": BINARY, "categorical_crossentropy": CATEGORIES,
    "categorical_focal_crossentropy": CATEGORIES, "sparse_categorical_crossentropy": SPARSE,
    "dice": BINARY, "tversky": BINARY,
}
LOSS_CLASSES = [
    ("MeanSquaredError", {"reduction": "sum"}, REGRESSION),
    ("MeanSquaredError", {"reduction": "none"}, REGRESSION),
    ("MeanSquaredError", {"reduction": "mean"}, REGRESSION),
    ("MeanSquaredError", {"reduction": "mean_with_sample_weight"}, REGRESSION),
    ("MeanSquaredError", {}, ("float[4,1]", "float[4]")),
    ("MeanSquaredError", {}, ("float[0,3]", "float[0,3]")),
    ("MeanAbsoluteError", {}, ("float[2,3,4]", "float[2,3,4]")),
    ("Huber", {"delta": 0.5}, REGRESSION),
    ("CosineSimilarity", {"axis": 0}, REGRESSION),
    ("CosineSimilarity", {}, ("float=[[0,0],[1,2]]", "float=[[1,2],[0,0]]")),
    ("Hinge", {}, ("float=[[0,1],[1,0]]", "float[2,2]")),
    ("SquaredHinge", {}, ("float=[[0,1],[1,0]]", "float[2,2]")),
    ("Poisson", {}, ("float=[[0,1],[2,0]]", "float[2,2]:positive")),
    ("KLDivergence", {}, ("float=[[0,1],[0.5,0.5]]", "float=[[0.5,0.5],[0,1]]")),
    ("MeanAbsolutePercentageError", {}, ("float=[[0,1],[2,-1]]", "float[2,2]")),
    ("BinaryCrossentropy", {"from_logits": True}, BINARY_LOGITS),
    ("BinaryCrossentropy", {"label_smoothing": 0.1}, BINARY),
    ("BinaryCrossentropy", {"axis": 0}, BINARY),
    ("BinaryCrossentropy", {}, EDGES),
    ("BinaryCrossentropy", {"from_logits": True},
     ("float=[[0,1,1,0]]", "float=[[100,100,-100,-100]]")),
    ("BinaryFocalCrossentropy", {"gamma": 3.0, "apply_class_balancing": True}, BINARY),
    ("BinaryFocalCrossentropy", {"from_logits": True, "alpha": 0.4}, BINARY_LOGITS),
    ("CategoricalCrossentropy", {"from_logits": True}, LOGITS),
    ("CategoricalCrossentropy", {"label_smoothing": 0.2}, CATEGORIES),
    ("CategoricalCrossentropy", {}, ("float[3,4]:onehot", "float[3,4]:positive")),
    ("CategoricalCrossentropy", {}, EDGES),
    ("CategoricalCrossentropy", {"axis": 1}, ("float[2,3,2]:ints(0,2)", "float[2,3,2]:positive")),
    ("CategoricalFocalCrossentropy", {"alpha": 0.5, "gamma": 1.0, "from_logits": True}, LOGITS),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, SPARSE_LOGITS),
    ("SparseCategoricalCrossentropy", {}, SPARSE_COLUMN),
    ("SparseCategoricalCrossentropy", {"ignore_class": 2},
     ("int32=[0,2,4,2]", "float[4,5]:probabilities")),
    ("SparseCategoricalCrossentropy", {"from_logits": True},
     ("int32[2,3]:ints(0,4)", "float[2,3,4]")),
    ("SparseCategoricalCrossentropy", {"reduction": "none"}, SPARSE),
    ("Tversky", {"alpha": 0.3, "beta": 0.7}, BINARY),
    ("Dice", {"axis": [1]}, BINARY),
]

# --- Metrics ----------------------------------------------------------------------------------

RANKS = ("float[6,5]:onehot", "float[6,5]:distinct")
SPARSE_RANKS = ("int32[6]:ints(0,5)", "float[6,5]:distinct")
LABELS = ("int32[8]:ints(0,3)", "int32[8]:ints(0,3)")
SCORES = ("float[9]:ints(0,2)", "float[9]:uniform(0.01,0.99)")
METRICS = [
    ("Mean", {}, None), ("Sum", {}, None),
    ("MeanSquaredError", {}, REGRESSION), ("RootMeanSquaredError", {}, REGRESSION),
    ("MeanAbsoluteError", {}, REGRESSION), ("MeanAbsolutePercentageError", {}, REGRESSION),
    ("MeanSquaredLogarithmicError", {}, POSITIVE), ("CosineSimilarity", {}, REGRESSION),
    ("LogCoshError", {}, REGRESSION), ("R2Score", {}, REGRESSION),
    ("R2Score", {"class_aggregation": "variance_weighted_average"}, REGRESSION),
    ("Poisson", {}, POSITIVE), ("KLDivergence", {}, CATEGORIES), ("Hinge", {}, SIGNED),
    ("SquaredHinge", {}, SIGNED), ("CategoricalHinge", {}, CATEGORIES),
    ("BinaryCrossentropy", {}, BINARY), ("BinaryCrossentropy", {"from_logits": True},
                                         BINARY_LOGITS),
    ("CategoricalCrossentropy", {}, CATEGORIES),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, CATEGORIES),
    ("SparseCategoricalCrossentropy", {}, SPARSE),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, SPARSE_LOGITS),
    ("Accuracy", {}, LABELS), ("BinaryAccuracy", {}, BINARY),
    ("BinaryAccuracy", {"threshold": 0.3}, BINARY), ("CategoricalAccuracy", {}, RANKS),
    ("SparseCategoricalAccuracy", {}, SPARSE_RANKS),
    ("SparseCategoricalAccuracy", {}, ("int32[6,1]:ints(0,5)", "float[6,5]:distinct")),
    ("TopKCategoricalAccuracy", {"k": 2}, RANKS),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, SPARSE_RANKS),
    ("TruePositives", {}, SCORES), ("TrueNegatives", {}, SCORES), ("FalsePositives", {}, SCORES),
    ("FalseNegatives", {}, SCORES), ("TruePositives", {"thresholds": [0.2, 0.8]}, SCORES),
    ("Precision", {}, SCORES), ("Recall", {}, SCORES),
    ("Precision", {"thresholds": [0.2, 0.8]}, SCORES),
    ("Precision", {"top_k": 2}, RANKS), ("Recall", {"class_id": 1, "top_k": 2}, RANKS),
    ("AUC", {}, SCORES), ("AUC", {"curve": "PR"}, SCORES),
    ("AUC", {"num_thresholds": 5, "summation_method": "majoring"}, SCORES),
    ("AUC", {"num_thresholds": 5, "summation_method": "minoring"}, SCORES),
    ("AUC", {"multi_label": True}, BINARY), ("AUC", {"from_logits": True}, ("float[9]:ints(0,2)",
                                                                            "float[9]")),
    ("F1Score", {}, CATEGORIES), ("F1Score", {"average": "macro"}, CATEGORIES),
    ("FBetaScore", {"beta": 2.0, "threshold": 0.5, "average": "micro"}, BINARY),
    ("PrecisionAtRecall", {"recall": 0.6}, SCORES), ("RecallAtPrecision", {"precision": 0.6},
                                                     SCORES),
    ("SensitivityAtSpecificity", {"specificity": 0.5}, SCORES),
    ("SpecificityAtSensitivity", {"sensitivity": 0.5}, SCORES),
    ("MeanIoU", {"num_classes": 3}, LABELS),
    ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, LABELS),
    ("BinaryIoU", {"target_class_ids": [0, 1], "threshold": 0.5}, SCORES),
    ("OneHotMeanIoU", {"num_classes": 5}, CATEGORIES),
    ("PearsonCorrelation", {"axis": 0}, REGRESSION),
    ("ConcordanceCorrelation", {"axis": 0}, REGRESSION),
]
METRIC_NAMES = ["accuracy", "binary_accuracy", "categorical_accuracy",
                "sparse_categorical_accuracy", "top_k_categorical_accuracy",
                "sparse_top_k_categorical_accuracy", "mse", "mae", "mape", "msle", "bce",
                "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error",
                "mean_squared_logarithmic_error", "root_mean_squared_error", "cosine_similarity",
                "log_cosh_error", "poisson", "kl_divergence", "hinge", "squared_hinge",
                "categorical_hinge", "binary_crossentropy", "categorical_crossentropy",
                "sparse_categorical_crossentropy", "precision", "recall", "auc", "f1_score",
                "r2_score", "true_positives", "true_negatives", "false_positives",
                "false_negatives", "mean", "sum"]
UNWEIGHTED = {"PearsonCorrelation", "ConcordanceCorrelation"}

# --- Optimizers and schedules -----------------------------------------------------------------

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"learning_rate": 0.1}), ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"weight_decay": 0.01}),
    ("SGD", {"learning_rate": 0.1, "clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "clipvalue": 0.3}),
    ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "global_clipnorm": 100.0}),
    ("SGD", {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.5}),
    ("SGD", {"learning_rate": 0.1, "gradient_accumulation_steps": 2}),
    ("Adam", {}), ("Adam", {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3}),
    ("Adam", {"amsgrad": True}), ("Adam", {"weight_decay": 0.01}), ("Adam", {"clipnorm": 0.5}),
    ("Adam", {"clipvalue": 0.3}), ("Adam", {"global_clipnorm": 0.5}),
    ("AdamW", {}), ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("AdamW", {"amsgrad": True, "clipnorm": 0.5}),
    ("RMSprop", {}), ("RMSprop", {"learning_rate": 0.1, "rho": 0.8}),
    ("RMSprop", {"momentum": 0.9}), ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "clipvalue": 0.3}),
    ("Adagrad", {}), ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"global_clipnorm": 0.5, "weight_decay": 0.01}),
    ("Adadelta", {}), ("Adamax", {}), ("Nadam", {}),
]
SCHEDULED = {"class": "ExponentialDecay",
             "config": {"initial_learning_rate": 0.5, "decay_steps": 2, "decay_rate": 0.5}}
STEPS = [0, 1, 2, 5, 9, 10, 11, 50, 99, 100, 101, 150, 1000]
SCHEDULES = [
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5}),
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5,
                          "staircase": True}),
    ("PiecewiseConstantDecay", {"boundaries": [10, 100], "values": [1.0, 0.5, 0.1]}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 100}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 100,
                         "end_learning_rate": 0.01, "power": 2.0}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 100, "cycle": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5,
                          "staircase": True}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 100}),
    ("CosineDecay", {"initial_learning_rate": 0.0, "decay_steps": 100, "alpha": 0.1,
                     "warmup_target": 0.1, "warmup_steps": 10}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 50}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 10, "t_mul": 1.5,
                             "m_mul": 0.9, "alpha": 0.1}),
]

# --- Initializers -----------------------------------------------------------------------------

SHAPES = [[64, 48], [3, 3, 8, 16], [128]]
INITIALIZERS = [
    ("GlorotUniform", {}), ("GlorotNormal", {}), ("HeUniform", {}), ("HeNormal", {}),
    ("LecunUniform", {}), ("LecunNormal", {}),
    ("VarianceScaling", {"scale": 2.0, "mode": "fan_out", "distribution": "untruncated_normal"}),
    ("VarianceScaling", {"scale": 0.5, "mode": "fan_avg", "distribution": "uniform"}),
    ("RandomNormal", {}), ("RandomNormal", {"mean": 1.0, "stddev": 0.5}),
    ("TruncatedNormal", {}), ("TruncatedNormal", {"mean": -1.0, "stddev": 0.25}),
    ("RandomUniform", {}), ("RandomUniform", {"minval": -1.0, "maxval": 3.0}),
]
FIXED_INITIALIZERS = [("Zeros", {}, [2, 3]), ("Ones", {}, [4]), ("Constant", {"value": 2.5}, [2]),
                      ("Identity", {}, [3, 3]), ("Identity", {"gain": 2.0}, [2, 3])]
INITIALIZER_NAMES = ["zeros", "ones", "glorot_uniform", "glorot_normal", "he_uniform",
                     "he_normal", "lecun_uniform", "lecun_normal", "random_normal",
                     "random_uniform", "truncated_normal", "uniform", "normal", "orthogonal",
                     "identity", "variance_scaling", "zero", "one"]


# --- Models -----------------------------------------------------------------------------------

def mlp():
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, activation="relu"),
                             keras.layers.Dense(3, activation="softmax")])


def cnn():
    return keras.Sequential([
        keras.Input((6, 6, 1)), keras.layers.Conv2D(3, 3, padding="same"),
        keras.layers.BatchNormalization(), keras.layers.Activation("relu"),
        keras.layers.MaxPooling2D(), keras.layers.Flatten(), keras.layers.Dense(3)])


def regression():
    return keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(6, activation="tanh", kernel_regularizer="l2"),
        keras.layers.Dense(1)])


def binary():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="gelu"),
                             keras.layers.Dense(1, activation="sigmoid")])


def attention():
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    x = keras.layers.Embedding(8, 6)(tokens)
    y = keras.layers.MultiHeadAttention(2, 3)(x, x)
    x = keras.layers.LayerNormalization()(keras.layers.Add()([x, y]))
    x = keras.layers.Flatten()(x)
    return keras.Model(tokens, keras.layers.Dense(2, activation="softmax")(x))


def tagger():
    """A class for each token; 0 is padding, which neither loss nor metrics count."""
    return keras.Sequential([
        keras.Input((5,), dtype="int32", name="tokens"),
        keras.layers.Embedding(8, 4, mask_zero=True),
        keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True)),
        keras.layers.Dropout(0.0), keras.layers.Dense(3, activation="softmax")])


def summed():
    """Masks of two branches meet, and end in an average over the steps that count."""
    x = keras.Input((4, 3), name="steps")
    masked = keras.layers.Masking()(x)
    a = keras.layers.GRU(4, return_sequences=True)(masked)
    b = keras.layers.TimeDistributed(keras.layers.Dense(4))(masked)
    y = keras.layers.LayerNormalization()(keras.layers.Add()([a, b]))
    y = keras.layers.MultiHeadAttention(2, 3)(y, y)
    y = keras.layers.GlobalAveragePooling1D()(y)
    return keras.Model(x, keras.layers.Dense(1)(y))


def classifier():
    return keras.Sequential([
        keras.Input((4, 3)), keras.layers.LSTM(4, return_sequences=True),
        keras.layers.LSTM(3), keras.layers.Dense(2, activation="softmax")])


# Model's name, builder, compile arguments, x, y.
MODELS = [
    ("mlp", mlp, {"optimizer": "adam", "loss": "sparse_categorical_crossentropy",
                  "metrics": ["accuracy"]}, "float[10,6]", "int32[10]:ints(0,3)"),
    ("mlp", mlp, {"optimizer": "rmsprop", "loss": "categorical_crossentropy",
                  "metrics": ["accuracy", "mse"]}, "float[10,6]", "float[10,3]:onehot"),
    ("mlp", mlp, {"optimizer": {"class": "Adam", "config": {"learning_rate": 0.1}},
                  "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
     "float[10,6]", "int32[10]:ints(0,3)"),
    ("regression", regression, {"optimizer": "sgd", "loss": "mse", "metrics": ["mae"]},
     "float[10,4]", "float[10,1]"),
    ("regression", regression, {"optimizer": {"class": "SGD", "config": {
        "learning_rate": 0.05, "momentum": 0.9, "nesterov": True}}, "loss": "huber",
        "metrics": ["mse"]}, "float[10,4]", "float[10,1]"),
    ("binary", binary, {"optimizer": "adamw", "loss": "binary_crossentropy",
                        "metrics": ["accuracy"]}, "float[10,4]", "float[10,1]:ints(0,2)"),
    ("cnn", cnn, {"optimizer": "sgd", "loss": "mse", "metrics": []}, "float[10,6,6,1]",
     "float[10,3]"),
    ("attention", attention, {"optimizer": "adam", "loss": "sparse_categorical_crossentropy",
                              "metrics": ["accuracy"]}, "int32[10,5]:ints(0,8)",
     "int32[10]:ints(0,2)"),
    ("tagger", tagger, {"optimizer": {"class": "SGD", "config": {"learning_rate": 0.5}},
                        "loss": "sparse_categorical_crossentropy",
                        "metrics": ["accuracy", "sparse_categorical_crossentropy"]},
     "int32[10,5]:ints(0,4)", "int32[10,5]:ints(0,3)"),
    ("summed", summed, {"optimizer": "sgd", "loss": "mse", "metrics": ["mae"]},
     "float[10,4,3]:ints(0,2)", "float[10,1]"),
    ("classifier", classifier, {"optimizer": "adam", "loss": "sparse_categorical_crossentropy",
                                "metrics": ["accuracy"]},
     "float[10,4,3]", "int32[10]:ints(0,2)"),
]
FIT = {"batch_size": 4, "epochs": 3, "shuffle": False}


# --- Mixed precision --------------------------------------------------------------------------

POLICIES = ["mixed_bfloat16", "mixed_float16"]
# As LAYERS, under each of the policies.
PRECISION_LAYERS = [
    ("Dense", {"units": 4, "activation": "relu"}, {"inputs": "float[3,5]"}, {}),
    ("Dense", {"units": 4, "kernel_regularizer": "l2"}, {"inputs": "float[2,3,5]"}, {}),
    ("Conv2D", {"filters": 4, "kernel_size": 3, "padding": "same", "activation": "relu"},
     {"inputs": IMAGE}, {}),
    ("Conv1D", {"filters": 4, "kernel_size": 3}, {"inputs": LONG}, {}),
    ("DepthwiseConv2D", {"kernel_size": 3}, {"inputs": IMAGE}, {}),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2}, {"inputs": IMAGE}, {}),
    ("MaxPooling2D", {}, {"inputs": IMAGE}, {}),
    ("AveragePooling2D", {"pool_size": 2}, {"inputs": IMAGE}, {}),
    ("GlobalAveragePooling2D", {}, {"inputs": IMAGE}, {}),
    ("Flatten", {}, {"inputs": IMAGE}, {}),
    ("ZeroPadding2D", {"padding": 1}, {"inputs": IMAGE}, {}),
    ("BatchNormalization", {}, {"inputs": IMAGE}, {"training": True}),
    ("BatchNormalization", {}, {"inputs": IMAGE}, {"training": False}),
    ("BatchNormalization", {}, {"inputs": "float[6,3]"}, {"training": True}),
    ("LayerNormalization", {}, {"inputs": SEQUENCE}, {}),
    ("GroupNormalization", {"groups": 3}, {"inputs": IMAGE}, {}),
    ("RMSNormalization", {}, {"inputs": SEQUENCE}, {}),
    ("Embedding", {"input_dim": 5, "output_dim": 3}, {"inputs": "int32[2,4]:ints(0,5)"}, {}),
    ("Activation", {"activation": "softmax"}, {"inputs": "float[3,4]"}, {}),
    ("Activation", {"activation": "gelu"}, {"inputs": "float[3,4]"}, {}),
    ("Softmax", {}, {"inputs": "float[3,4]"}, {}),
    ("Add", {}, {"0": SEQUENCE, "1": SEQUENCE}, {}),
    ("Rescaling", {"scale": 0.5, "offset": 1.0}, {"inputs": "float[3,4]"}, {}),
    # Small inputs: the gradient of a softmax that is all but decided is made of rounding errors.
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3},
     {"query": "float[2,4,6]:normal(0,0.2)", "value": "float[2,4,6]:normal(0,0.2)"}, {}),
    ("LSTM", {"units": 3}, {"inputs": SEQUENCE}, {}),
    ("LSTM", {"units": 3, "return_sequences": True}, {"inputs": SEQUENCE}, {}),
    ("GRU", {"units": 3}, {"inputs": SEQUENCE}, {}),
]


def half_cnn():
    """The last layer in full precision, as Keras' guide advises."""
    return keras.Sequential([
        keras.Input((6, 6, 1)), keras.layers.Conv2D(3, 3, padding="same"),
        keras.layers.BatchNormalization(), keras.layers.Activation("relu"),
        keras.layers.MaxPooling2D(), keras.layers.Flatten(),
        keras.layers.Dense(3, activation="softmax", dtype="float32")])


# Model's name, builder, compile arguments, x, y: one step, under each of the policies.
PRECISION_MODELS = [
    ("mlp", mlp, {"optimizer": {"class": "SGD", "config": {"learning_rate": 0.1}},
                  "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
     "float[10,6]", "int32[10]:ints(0,3)"),
    ("half_cnn", half_cnn, {"optimizer": {"class": "SGD", "config": {
        "learning_rate": 0.1, "momentum": 0.9}}, "loss": "sparse_categorical_crossentropy",
        "metrics": ["accuracy"]}, "float[10,6,6,1]", "int32[10]:ints(0,3)"),
    ("classifier", classifier, {"optimizer": {"class": "SGD", "config": {"learning_rate": 0.1}},
                                "loss": "sparse_categorical_crossentropy", "metrics": []},
     "float[10,4,3]", "int32[10]:ints(0,2)"),
    ("regression", regression, {"optimizer": {"class": "SGD", "config": {"learning_rate": 0.1}},
                                "loss": "mse", "metrics": ["mae"]},
     "float[10,4]", "float[10,1]"),
]
# The optimizer within, the arguments of LossScaleOptimizer, and what each step's gradients are.
LOSS_SCALES = [
    ("SGD", {"learning_rate": 0.1}, {"initial_scale": 1024.0, "dynamic_growth_steps": 2},
     ["fine", "fine", "fine", "inf", "fine", "nan", "inf", "fine", "fine", "fine"]),
    ("Adam", {"learning_rate": 0.1}, {"initial_scale": 8.0, "dynamic_growth_steps": 3},
     ["inf", "fine", "fine", "fine", "fine", "nan", "fine"]),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "clipnorm": 0.5}, {},
     ["fine", "inf", "fine"]),
    ("RMSprop", {"learning_rate": 0.1, "weight_decay": 0.01},
     {"initial_scale": 2.0, "dynamic_growth_steps": 1}, ["fine", "nan", "fine"]),
]
