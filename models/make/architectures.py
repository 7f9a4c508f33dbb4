"""Three networks that upsample, small enough to be committed, in PyTorch."""

import torch
from torch import nn


class Dcgan(nn.Module):
    """The generator of DCGAN (Radford et al., 2015): a vector becomes an image of 32 by 32."""

    def __init__(self, latent=8, width=4):
        super().__init__()

        def up(inputs, outputs, *geometry):
            return [nn.ConvTranspose2d(inputs, outputs, *geometry, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

        self.main = nn.Sequential(
            *up(latent, 4 * width, 4, 1, 0),
            *up(4 * width, 2 * width, 4, 2, 1),
            *up(2 * width, width, 4, 2, 1),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)

    @staticmethod
    def example():
        return (torch.randn(1, 8, 1, 1),)


class HifiGan(nn.Module):
    """The generator of HiFi-GAN (Kong et al., 2020): mel frames become 128 samples each."""

    def __init__(self, mel=8, width=16):
        super().__init__()
        self.pre = nn.Conv1d(mel, width, 7, padding=3)
        rates = [(8, 16), (8, 16), (2, 4)]
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(width >> i, width >> i + 1, k, u, padding=(k - u) // 2) for i, (u, k) in enumerate(rates)
        )
        self.residual = nn.ModuleList(
            nn.Conv1d(width >> i + 1, width >> i + 1, 3, dilation=3, padding=3) for i in range(len(rates))
        )
        self.post = nn.Conv1d(width >> len(rates), 1, 7, padding=3)

    def forward(self, mel):
        x = self.pre(mel)
        for up, residual in zip(self.ups, self.residual):
            x = up(nn.functional.leaky_relu(x, 0.1))
            x = x + residual(nn.functional.leaky_relu(x, 0.1))
        return torch.tanh(self.post(nn.functional.leaky_relu(x)))

    @staticmethod
    def example():
        return (torch.randn(1, 8, 5),)


class UnetDecoder(nn.Module):
    """The decoder of a U-Net (Ronneberger et al., 2015), with one step that overlaps and one that does not."""

    def __init__(self, width=4):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.mix1 = nn.Conv2d(4 * width, 2 * width, 1)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 3, 2, padding=1, output_padding=1)
        self.mix2 = nn.Conv2d(2 * width, width, 1)
        self.head = nn.ConvTranspose2d(width, width, 4, 4, groups=width)

    def forward(self, deep, middle, shallow):
        x = torch.relu(self.mix1(torch.cat([self.up1(deep), middle], dim=1)))
        x = torch.relu(self.mix2(torch.cat([self.up2(x), shallow], dim=1)))
        return self.head(x)

    @staticmethod
    def example():
        return torch.randn(1, 16, 2, 3), torch.randn(1, 8, 4, 6), torch.randn(1, 4, 8, 12)


MODELS = {"dcgan": Dcgan, "hifigan": HifiGan, "unet-decoder": UnetDecoder}


def build(name):
    """The network with weights that are the same on every run, and an example input."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for module in model.modules():
        # Fresh normalization does nothing; trained one does.
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return model, MODELS[name].example()


def recorded(model, example, fused=False):
    """What went into each transposed convolution and what came out: of it, or of the normalization that follows where an
    exporter has fused the two."""
    modules = [module for module in model.modules() if not list(module.children())]
    calls, hooks = [], []
    for module, following in zip(modules, modules[1:] + [None]):
        if isinstance(module, nn.modules.conv._ConvTransposeNd):
            last = following if fused and isinstance(following, nn.BatchNorm2d) else module
            hooks.append(module.register_forward_hook(lambda _, x, y: calls.append([x[0].numpy(), y.numpy()])))
            if last is not module:
                hooks.append(last.register_forward_hook(lambda _, x, y: calls[-1].__setitem__(1, y.numpy())))
    with torch.no_grad():
        model(*example)
    for hook in hooks:
        hook.remove()
    return calls
