"""Small convolutional models, made of what large ones are made of."""

import torch
from torch import nn
from torch.nn import functional


def layers(inner, outer, kernel, stride=1, groups=1, activation=None):
    """Convolution, batch norm and activation."""
    padding = kernel // 2
    made = [
        nn.Conv2d(inner, outer, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outer),
    ]
    return nn.Sequential(*made, *([activation] if activation else []))


class Residual(nn.Module):
    """Two convolutions beside a shortcut, as in ResNet."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = layers(inner, outer, 3, stride, activation=nn.ReLU(inplace=True))
        self.second = layers(outer, outer, 3)
        self.short = layers(inner, outer, 1, stride) if inner != outer else nn.Identity()

    def forward(self, x):
        return functional.relu(self.second(self.first(x)) + self.short(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = layers(3, 8, 7, 2, activation=nn.ReLU(inplace=True))
        self.blocks = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.classes = nn.Linear(16, 5)

    def forward(self, x):
        x = self.blocks(functional.max_pool2d(self.stem(x), 3, 2, 1))
        return self.classes(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Inverted(nn.Module):
    """Wide depthwise convolutions between narrow products, as in MobileNetV2."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        wide = 3 * inner
        self.calls = nn.Sequential(
            layers(inner, wide, 1, activation=nn.ReLU6(inplace=True)),
            layers(wide, wide, 3, stride, wide, activation=nn.ReLU6(inplace=True)),
            layers(wide, outer, 1),
        )
        self.is_residual = stride == 1 and inner == outer

    def forward(self, x):
        return x + self.calls(x) if self.is_residual else self.calls(x)


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            layers(3, 8, 3, 2, activation=nn.ReLU6(inplace=True)),
            Inverted(8, 8, 1),
            Inverted(8, 12, 2),
        )
        self.classes = nn.Sequential(nn.Dropout(0.2), nn.Linear(12, 5))

    def forward(self, x):
        return self.classes(functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


class DenseNet(nn.Module):
    """Results joined to what they were made of, and halves that change places, as in ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8 + 4 * n) for n in range(2)])
        self.layers = nn.ModuleList([nn.Conv2d(8 + 4 * n, 4, 3, 1, 1) for n in range(2)])
        self.classes = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = torch.cat([x, layer(functional.relu(norm(x)))], 1)
        first, second = functional.avg_pool2d(x, 2).chunk(2, 1)
        x = torch.cat([second, first], 1)
        n, channels, height, width = x.shape
        x = x.view(n, 2, channels // 2, height, width).transpose(1, 2).reshape(x.shape)
        return self.classes(functional.adaptive_avg_pool2d(x, 2).mean((2, 3)))


class Gated(nn.Module):
    """Channels weighted by what is in them, group norm, and images made larger again."""

    def __init__(self):
        super().__init__()
        self.stem = layers(3, 8, 3, 2, activation=nn.SiLU())
        self.norm = nn.GroupNorm(2, 8)
        self.less, self.more = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = functional.hardswish(self.norm(self.stem(x)))
        x = x * torch.sigmoid(self.more(functional.relu(self.less(x.mean((2, 3), keepdim=True)))))
        return self.out(functional.interpolate(self.up(x), scale_factor=2, mode="nearest"))


MODELS = {one.__name__: one for one in (ResNet, MobileNet, DenseNet, Gated)}
